import CCurl
import Glibc

/// Checks addresses for libcurl, as it connects to them.
final class AddressGate {
    private let rules: EndpointRules

    init(_ rules: EndpointRules) { self.rules = rules }

    /// Sets this object as the guard of the set, which keeps a pointer to it until it is given another guard.
    func guardConnections(of set: OpaquePointer) {
        roost_http2_set_guard(
            set,
            { context, address, length in
                guard let context, let address else { return 0 }
                let gate = Unmanaged<AddressGate>.fromOpaque(context).takeUnretainedValue()
                let socket = UnsafeRawBufferPointer(start: address, count: length)
                return gate.rules.problem(withConnectingTo: socket) == nil ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}
