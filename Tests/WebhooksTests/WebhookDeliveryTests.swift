import Hub
import Testing

@testable import Webhooks

/// One message after the other, until it is taken or nobody can.
@Suite struct WebhookDeliveryTests {
    private let message = WebhookMessage(id: "msg_1", [Happenings.Event(.missed, at: 0)], node: "one")
    private let start = ContinuousClock.now
    private var delivery = WebhookDelivery()

    init() { delivery.startMessage(message) }

    @Test mutating func whatIsTakenMakesRoomForTheNext() {
        #expect(delivery.handleAnswer(.status(204), at: start) == .taken(failures: 0))
        #expect(delivery.message == nil && delivery.retryAt == nil)
    }

    @Test mutating func whatIsNotTakenIsSentAgainWithinAGrowingPause() throws {
        var now = start
        for number in 1...20 {
            let answer: WebhookAnswer = number.isMultiple(of: 2) ? .status(503) : .problem("Connection refused")
            #expect(delivery.handleAnswer(answer, at: now) == .again(failures: number))
            #expect(delivery.message?.id == "msg_1")
            let retryAt = try #require(delivery.retryAt)
            #expect(retryAt - now <= .seconds(min(15, 1 << min(number - 1, 4))))
            #expect(delivery.isDue(at: retryAt))
            now = retryAt
        }
        #expect(delivery.handleAnswer(.status(200), at: now) == .taken(failures: 20))
    }

    /// 401, 403 and 404 pass when a key or an address is set right.
    @Test(arguments: [301, 401, 403, 404, 408, 429, 500, 502, 503, 504])
    mutating func whatMayPassIsNeverGivenUp(_ status: Int) {
        for number in 1...100 { #expect(delivery.handleAnswer(.status(status), at: start) == .again(failures: number)) }
    }

    @Test(arguments: [400, 413, 415, 422]) mutating func whatIsWrongInItselfIsGivenUpAfterEightTimesInARow(
        _ status: Int
    ) {
        for _ in 1..<WebhookDelivery.mostRefusals {
            #expect(delivery.handleAnswer(.status(status), at: start) != .refused)
        }
        _ = delivery.handleAnswer(.status(500), at: start)
        for _ in 1..<WebhookDelivery.mostRefusals {
            #expect(delivery.handleAnswer(.status(status), at: start) != .refused)
        }
        #expect(delivery.handleAnswer(.status(status), at: start) == .refused)
        #expect(delivery.message == nil)
        // The next one begins anew.
        delivery.startMessage(message)
        #expect(delivery.handleAnswer(.status(status), at: start) == .again(failures: 1))
    }
}
