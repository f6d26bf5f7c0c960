/// The limits of one connection, and the steps that it asks of its user.
extension HTTPConnection {
    package struct Limits: Sendable {
        package var head = HTTPLimits()
        package var bodyBytes = 5_000_000
        /// From a head's first byte to its last, in seconds; also for the first byte of a new connection.
        package var headSeconds: Int32 = 10
        /// From a body's first byte to its last.
        package var bodySeconds: Int32 = 30
        /// Between two pieces of a body that is passed on as it arrives.
        package var pieceSeconds: Int32 = 300
        /// Between a response and the next request. Proxies drop idle connections after 60 seconds and should be the
        /// first to do so.
        package var idleSeconds: Int32 = 75
        /// How long, and for how many bytes, a connection is still read after its last response. If it were closed at
        /// once, the kernel would answer unread input with a reset, which may cost the client the response (RFC 9112,
        /// section 9.6). Most clients send a whole body before they look for a response; these bytes are dropped.
        package var lingerSeconds: Int32 = 2
        package var lingerBytes = 8_388_608
        /// The longest rejected body that is skipped to keep the connection open.
        package var skippedBytes = 65_536
        /// How many bytes may wait behind the current request before reading stops.
        package var readAheadBytes = 65_536

        package init() {}
    }

    package enum Step: ~Copyable, Sendable {
        /// Nothing to do until bytes arrive, a response is given, or the socket has taken `output`.
        case wait
        /// A head is complete and none of the body was stored. The user must admit it (`admit`), answer it (`answer`)
        /// or take over the connection (`takeRest`) now.
        case judge(HTTPHead)
        /// Another piece of a body that is passed on as it arrives. No more of it is read before `goOn`.
        case piece([UInt8])
        /// The request is complete and can be answered now or later. For a body passed on in pieces, `body` is the last
        /// of them.
        case perform(body: [UInt8])
        /// The request cannot be processed, and the start of the next one is unknown. The user must answer it
        /// (`answer`) now, with `closes`, and complete the response first: the connection knows nothing of pages.
        case refuse(HTTPResponse)
        /// Everything is sent; the writing side must be shut down.
        case shutDown
        case close
    }
}
