/// The reason why a request is refused. It is answered with this status and sentence, and the connection is closed,
/// because the start of the next request is unknown.
package struct HTTPRefusal: Error, Sendable, Equatable {
    package let status: Int
    /// One sentence that says what to correct.
    package let message: String

    package init(status: Int, message: String) {
        self.status = status
        self.message = message
    }

    static func bad(_ message: String) -> HTTPRefusal { HTTPRefusal(status: 400, message: message) }
}

// MARK: The request line

extension HTTPRefusal {
    static var tls: HTTPRefusal {
        bad("This port takes HTTP without TLS: use http:// or ws:// here.")
    }

    static var noRequestLine: HTTPRefusal {
        bad("A request must begin with its method, in letters, as in GET / HTTP/1.1.")
    }

    static var methodTooLong: HTTPRefusal {
        HTTPRefusal(status: 501, message: "The method is longer than any that this server knows.")
    }

    static var noVersion: HTTPRefusal {
        bad(
            "A request line must be a method, a target and a version, with one space between them: GET / HTTP/1.1."
        )
    }

    static var version: HTTPRefusal {
        HTTPRefusal(status: 505, message: "This server speaks HTTP/1.1 and HTTP/1.0: send the request as one of these.")
    }

    static func targetTooLong(_ limit: Int) -> HTTPRefusal {
        HTTPRefusal(status: 414, message: "The request's target is too long: up to \(limit) bytes are taken.")
    }

    static var target: HTTPRefusal {
        bad("The request's target must be a path that begins with a slash, without spaces and without a fragment.")
    }

    static var targetBytes: HTTPRefusal {
        bad("The request's target may hold visible ASCII only: percent-encode everything else.")
    }

    static var escape: HTTPRefusal {
        bad(
            "A percent sign in the target must begin an escape of two hexadecimal digits, for UTF-8 without NUL."
        )
    }

    static var authority: HTTPRefusal {
        bad("The host in the request's target and the Host header must be the same.")
    }
}

// MARK: Fields

extension HTTPRefusal {
    static func headTooLong(_ limit: Int) -> HTTPRefusal {
        HTTPRefusal(status: 431, message: "The request's headers are too long: up to \(limit) bytes are taken in all.")
    }

    static func tooManyFields(_ limit: Int) -> HTTPRefusal {
        HTTPRefusal(status: 431, message: "The request has too many headers: up to \(limit) are taken.")
    }

    static var bareLineFeed: HTTPRefusal {
        bad("Each line of the request's head must end with a carriage return and a line feed.")
    }

    static var bareCarriageReturn: HTTPRefusal {
        bad("A carriage return may stand only at the end of a line, before its line feed.")
    }

    static var folded: HTTPRefusal {
        bad("A header must stand on one line: a line may not begin with a space or a tab.")
    }

    static var noColon: HTTPRefusal {
        bad("A header must be a name and a value with a colon between them.")
    }

    static var spaceBeforeColon: HTTPRefusal {
        bad("No space may stand between a header's name and its colon.")
    }

    static var fieldName: HTTPRefusal {
        bad("A header's name must be one or more letters, digits and !#$%&'*+-.^_`|~.")
    }

    static var fieldControl: HTTPRefusal {
        bad("A header's value may not hold control characters.")
    }

    static var fieldUTF8: HTTPRefusal {
        bad("A header's value must be ASCII or UTF-8.")
    }

    static var noHost: HTTPRefusal {
        bad("An HTTP/1.1 request must have a Host header.")
    }

    static var repeatedHost: HTTPRefusal {
        bad("A request must have one Host header only.")
    }

    static var host: HTTPRefusal {
        bad("The Host header must be a host name or address, with a port or without.")
    }
}

// MARK: The body

extension HTTPRefusal {
    static var length: HTTPRefusal {
        bad("Content-Length must be one decimal number of bytes.")
    }

    static var repeatedLength: HTTPRefusal {
        bad("A request must have one Content-Length header only.")
    }

    static var lengthAndCoding: HTTPRefusal {
        bad("A request may have Content-Length or Transfer-Encoding, but not both.")
    }

    static var coding: HTTPRefusal {
        bad("Transfer-Encoding must be chunked and nothing else.")
    }

    static var codingOf10: HTTPRefusal {
        bad("An HTTP/1.0 request may not have Transfer-Encoding: send Content-Length, or HTTP/1.1.")
    }

    static var chunkSize: HTTPRefusal {
        bad("A chunk must begin with its size in up to 16 hexadecimal digits, then a carriage return and a line feed.")
    }

    static var chunkEnd: HTTPRefusal {
        bad(
            "A chunk's data must have the size that its first line says and end with a carriage return and a line feed."
        )
    }

    static func chunkExtensions(_ limit: Int) -> HTTPRefusal {
        bad("The extensions of a body's chunks may have up to \(limit) bytes in all.")
    }

    static var chunkExtension: HTTPRefusal {
        bad("A chunk's extension must be visible ASCII on the line of the chunk's size.")
    }

    static func trailers(_ limit: Int) -> HTTPRefusal {
        HTTPRefusal(status: 431, message: "The trailers behind a chunked body may have up to \(limit) bytes in all.")
    }

    static var trailerField: HTTPRefusal {
        bad("Content-Length, Transfer-Encoding and Host may not stand in trailers.")
    }
}
