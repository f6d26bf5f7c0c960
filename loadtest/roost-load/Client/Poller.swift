import CLoad
import Glibc

/// epoll, level-triggered; a descriptor is known by its slot.
final class Poller {
    struct Events: OptionSet {
        let rawValue: UInt32
        static let readable = Events(rawValue: UInt32(roost_epoll_in))
        static let writable = Events(rawValue: UInt32(roost_epoll_out))
        /// Reported whether asked for or not.
        static let ended = Events(rawValue: UInt32(roost_epoll_ended))
    }
    private let descriptor: Int32
    private let ready = UnsafeMutablePointer<UInt64>.allocate(capacity: Int(roost_epoll_batch))

    init() throws {
        descriptor = roost_epoll_create()
        guard descriptor >= 0 else { throw LoadFailure.system("Making an epoll") }
    }

    deinit {
        close(descriptor)
        ready.deallocate()
    }

    func add(_ socket: Int32, _ slot: Int, _ events: Events) throws {
        guard roost_epoll_add(descriptor, socket, UInt32(slot), events.rawValue) == 0 else {
            throw LoadFailure.system("Watching a socket")
        }
    }

    func change(_ socket: Int32, _ slot: Int, _ events: Events) throws {
        guard roost_epoll_change(descriptor, socket, UInt32(slot), events.rawValue) == 0 else {
            throw LoadFailure.system("Watching a socket")
        }
    }

    func remove(_ socket: Int32) { _ = roost_epoll_remove(descriptor, socket) }

    @inline(__always)
    func wait(nanoseconds: UInt64, _ body: (Int, Events) throws -> Void) throws {
        let count = roost_epoll_wait(descriptor, ready, nanoseconds)
        guard count >= 0 else {
            if errno == EINTR { return }
            throw LoadFailure.system("Waiting for sockets")
        }
        for index in 0..<Int(count) {
            try body(Int(ready[index] & 0xFFFF_FFFF), Events(rawValue: UInt32(ready[index] >> 32)))
        }
    }
}
