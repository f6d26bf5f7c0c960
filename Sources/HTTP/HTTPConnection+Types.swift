/// What one connection may take and for how long, and what it says is to be done.
extension HTTPConnection {
    package struct Limits: Sendable {
        package var head = HTTPLimits()
        package var bodyBytes = 5_000_000
        /// From a head's first byte to its last, in seconds; also for the first byte of a new connection.
        package var headSeconds: Int32 = 10
        /// From a body's first byte to its last.
        package var bodySeconds: Int32 = 30
        /// Between two pieces of a body that is taken as it comes.
        package var pieceSeconds: Int32 = 300
        /// Between an answer and the next request: proxies give up idle connections after 60, and should be first.
        package var idleSeconds: Int32 = 75
        /// How long, and for how many bytes, a connection is read that was said goodbye to. Closed at once, the kernel would
        /// answer what is unread with a reset, which may take the answer away from the client (RFC 9112, section 9.6). Most
        /// clients send all of a body before they look for an answer; nothing of it is kept.
        package var lingerSeconds: Int32 = 2
        package var lingerBytes = 8_388_608
        /// Up to here a body that was not let in is passed over, and the connection kept.
        package var skippedBytes = 65_536
        /// How much may wait behind the request in hand before nothing more is read.
        package var readAheadBytes = 65_536

        package init() {}
    }

    package enum Step: ~Copyable, Sendable {
        /// Nothing, before bytes come, an answer is given, or the socket has taken what is in `output`.
        case wait
        /// A head is complete, and nothing of the body was kept: to be let in (`admit`), answered (`answer`) or handed over
        /// (`takeRest`) now.
        case judge(HTTPHead)
        /// More of a body that is taken as it comes. Nothing more of it is read before `goOn`.
        case piece([UInt8])
        /// The request is complete: to be answered, now or later. Of a body that was taken as it came, this is the rest.
        case perform(body: [UInt8])
        /// The request cannot be taken, and nobody knows where the next would begin: to be answered (`answer`) now, with
        /// `closes`. What it is answered is for its user to complete: of a page, the connection knows nothing.
        case refuse(HTTPResponse)
        /// All is said: the writing side is to be shut.
        case shutDown
        case close
    }
}
