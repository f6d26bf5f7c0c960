import Notify
import Stores
import Testing

/// What a backend is answered of each user whom it wants notified.
@Suite struct NotificationFateTests {
    private func fate(
        phones: Int = 0, isKnown: Bool = false, isRepeated: Bool = false, isWritten: Bool = false
    ) -> NotificationFate {
        NotificationFate(
            of: PushStore.NotifiedUser(user: "ann", phones: phones, isKnown: isKnown, isRepeated: isRepeated),
            isWritten: isWritten)
    }

    @Test func statuses() {
        #expect(fate(phones: 2, isKnown: true).status == .queued)
        #expect(fate(isKnown: true).status == .noPhone)
        #expect(fate().status == .unknown)
        #expect(fate(phones: 2, isKnown: true, isRepeated: true).status == .repeated)
        #expect(fate(phones: 2, isKnown: true, isWritten: true).status == .repeated, "nobody has read it yet")
    }

    @Test("Only of those who are to get it is it said how many phones they have")
    func answer() {
        let answer = NotificationFate.answer(
            to: "order-7", [fate(phones: 2, isKnown: true), fate(phones: 2, isRepeated: true), fate(isKnown: true)])
        #expect(
            String(decoding: answer, as: UTF8.self) == """
                {"id":"order-7","users":[{"userId":"ann","status":"queued","phones":2},\
                {"userId":"ann","status":"repeated"},{"userId":"ann","status":"no_phone"}]}
                """)
    }
}
