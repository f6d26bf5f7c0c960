import CLoad
import Glibc

/// epoll, level-triggered; a socket is known by its number in the fleet.
final class Poller {
    private let descriptor: Int32
    private var ready = [UInt32](repeating: 0, count: Int(roost_epoll_batch))

    init() throws {
        descriptor = roost_epoll_create()
        guard descriptor >= 0 else { throw LoadFailure.system("Making an epoll") }
    }

    deinit { close(descriptor) }

    /// Reports `socket` as soon as its connection stands or failed.
    func add(_ socket: Int32, _ slot: Int) throws {
        guard roost_epoll_add(descriptor, socket, UInt32(slot)) == 0 else { throw LoadFailure.system("epoll_ctl") }
    }

    /// Reports `socket` whenever there is something to read.
    func read(_ socket: Int32, _ slot: Int) throws {
        guard roost_epoll_read(descriptor, socket, UInt32(slot)) == 0 else { throw LoadFailure.system("epoll_ctl") }
    }

    func wait(milliseconds: Int, _ body: (Int) throws -> Void) throws {
        let count = roost_epoll_wait(descriptor, &ready, Int32(milliseconds))
        guard count >= 0 else {
            if errno == EINTR { return }
            throw LoadFailure.system("Waiting for sockets")
        }
        for index in 0..<Int(count) { try body(Int(ready[index])) }
    }
}
