import Hub
import Notify
import Testing
import Wire

/// What sockets are asked for a proof: of a user, or of one of the user's devices.
@Suite struct PresenceViewTests {
    private let now = HubTime(monotonic: 1000, unix: 1000)
    private let place = SocketPlace(loop: 0, slot: 1)
    private let view = PresenceView(
        users: UserPresence(notesTransitions: false), devices: UserPresence(notesTransitions: false),
        typing: TypingRegistry(), presence: PresenceLog())

    private func sockets(_ session: Name?, isRestarting: Bool = false) -> UserSockets {
        view.sockets(of: "ada", session: session, demandsShown: true, isRestarting: isRestarting)
    }

    @Test("A device has its own sockets and its own window, and its user has all of them")
    func byDevice() {
        view.users.socketOpened("ada", from: place, at: now)
        view.devices.socketOpened(DeviceKey.makeKey(user: "ada", session: "laptop"), from: place, at: now)
        #expect(sockets(nil).places == [place])
        #expect(sockets("laptop").places == [place])
        #expect(sockets("phone") == UserSockets(places: [], graceUntil: nil))
        view.devices.socketClosed(DeviceKey.makeKey(user: "ada", session: "laptop"), from: place, window: 2000, at: now)
        #expect(sockets("laptop").graceUntil == 3000)
        #expect(sockets("laptop", isRestarting: true).graceUntil == 3000)
    }

    @Test("After a restart it is not known which devices may come back, but whose")
    func afterARestart() {
        view.users.restoreUsers([(user: "ada", seen: 0)], until: 9000)
        #expect(sockets("phone", isRestarting: true).graceUntil == 9000)
        #expect(sockets("phone").graceUntil == nil)
        // One of them is back, and nobody knows of the others.
        view.users.socketOpened("ada", from: place, at: now)
        #expect(sockets("phone", isRestarting: true) == UserSockets(places: [], graceUntil: nil))
    }
}
