package import Wire

/// A request about a stream. Authorization precedes it.
package enum StreamRequest: Sendable {
    /// Creates the stream, or finds that it exists with the same configuration.
    ///
    /// - Parameter isNext: a stream that has ended is replaced by a new generation (`StreamID`).
    case create(StreamConfiguration, body: [UInt8], closes: Bool, isNext: Bool)
    case append(StreamAppend)
    /// Fences the stream: it ends where it is now. Only this generation if one is named, as for `delete`. Carries the
    /// rights of the canceller; nil for an operator.
    case cancel(StreamID?, by: StreamBearer?)
    case delete(StreamID?)
    /// The producer of this generation gave up: the stream ends as `aborted`.
    case abort(StreamID)
    /// A producer holds a connection through which it will append.
    case hold(StreamHold)
    /// That connection ended. Without notice, that is a fault, and the producer is taken for gone at once.
    case release(StreamHold, isFault: Bool)
    /// A reader read the stream, which extends an idle lifetime.
    case touch
}

/// Bytes for a stream's end, its close, or both.
package struct StreamAppend: Sendable {
    /// In JSON mode a message or an array of messages, as the client wrote them.
    package var body: [UInt8]
    /// Nil if the transport carries none; the stream's type applies.
    package var contentType: String?
    package var closes = false
    package var producer: ProducerStamp?
    /// `Stream-Generation`: the only generation that may be appended to; nil for the current one.
    package var generation: StreamID?
    /// `Stream-Seq`: grows from one append to the next, compared byte by byte.
    package var sequence: String?
    /// The rights with which the statement of `streams.on_close` runs.
    package var bearer: StreamBearer?

    package init(body: [UInt8]) { self.body = body }
}

/// `Producer-Id`, `Producer-Epoch` and `Producer-Seq` of an append (Durable Streams, idempotent producers).
package struct ProducerStamp: Sendable, Equatable {
    package let id: Name
    /// At most `largest`, like `sequence`.
    package let epoch: Int
    /// The sequence of this request, from zero in each epoch.
    package let sequence: Int

    package init(id: Name, epoch: Int, sequence: Int) {
        self.id = id
        self.epoch = epoch
        self.sequence = sequence
    }

    /// The largest integer that JavaScript's numbers represent exactly.
    package static let largest = 1 << 53 - 1

    /// Checks values from outside; nil if they are invalid.
    package init?(told id: String, epoch: Int, sequence: Int) {
        guard !id.isEmpty, id.utf8.count <= 200, 0...Self.largest ~= epoch, 0...Self.largest ~= sequence else {
            return nil
        }
        self.init(id: Name(id), epoch: epoch, sequence: sequence)
    }
}

/// The rights of the client that ends a stream, as Postgres gets them: `role`, and `request.jwt.claims`.
package struct StreamBearer: Sendable, Equatable {
    package let role: Name
    /// A JSON object.
    package let claims: [UInt8]

    package init(role: Name, claims: [UInt8]) {
        self.role = role
        self.claims = claims
    }
}

/// One connection of a producer; unique within the process.
package struct StreamHold: Sendable, Hashable {
    package let loop: Int
    /// Negative for a long request, positive for a member of the stream's channel.
    package let serial: Int

    package var isRequest: Bool { serial < 0 }

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// The result of a request.
package enum StreamAnswer: Sendable {
    case created(StreamSnapshot)
    /// The stream existed, with an equivalent configuration.
    case existed(StreamSnapshot)
    /// `isRepeated`: the producer had sent this before, and nothing was appended now. `stamp`: the producer's current state.
    case appended(StreamSnapshot, isRepeated: Bool, stamp: ProducerStamp?)
    /// Cancelled, deleted, held, released or touched.
    case done(StreamSnapshot?)
    case refused(StreamRefusal)
}

/// Why a request is refused. `docs/errors.md` says what clients should do.
package enum StreamRefusal: Error, Sendable, Equatable {
    case notFound
    /// Deleted or expired a moment ago.
    case gone
    /// A stream of this name exists with another configuration.
    case otherConfiguration
    /// The stream ended: `409` with the final offset.
    case ended(StreamSnapshot)
    /// The name has another generation than the requested one: `409` with its id.
    case otherGeneration(StreamSnapshot)
    case contentType(expected: String)
    case emptyBody
    case notJSON
    case emptyArray
    case notUTF8
    /// `403`: a newer incarnation of this producer has written, or its lease expired.
    case staleEpoch(current: Int)
    /// A new epoch begins with the sequence zero.
    case epochMustBeginAtZero
    /// So far ahead that no later epoch could follow.
    case epochTooFar(most: Int)
    case sequenceGap(expected: Int, received: Int)
    /// `Stream-Seq` did not grow.
    case sequenceRegression
    /// More than `streams.bytes` in one stream.
    case streamTooLarge(limit: Int)
    /// The stream cannot remember more producers.
    case tooManyProducers
    /// All streams together reach `streams.total_bytes` or `streams.count`.
    case tooMuch(limit: String)
    /// The owner has as much as one may have.
    case overShare(limit: String)
    /// Writing is impossible: the disk is full.
    case noRoom
    /// The statement of `streams.on_close` failed; the stream is still open. Carries Postgres' sentence, and the rule it comes from.
    case closeFailed(String)
    /// The database, or the keeper of streams, cannot be reached now.
    case unavailable
}

extension StreamRefusal {
    /// The categories by which refusals are counted: values of a metric's label, which stay the same when sentences change.
    package enum Reason: String, Sendable, CaseIterable {
        case notFound = "not_found"
        case otherConfiguration = "other_configuration"
        case ended
        case otherGeneration = "other_generation"
        case contentType = "content_type"
        case content
        /// An older incarnation of a producer, or one whose lease expired.
        case fenced
        case order
        case tooLarge = "too_large"
        /// The limit of one stream.
        case tooManyProducers = "too_many_producers"
        /// The limit of all streams together.
        case full
        /// The limit of one owner's streams.
        case share
        case disk
        case row
        case unavailable
        /// Denied by the policies; counted by their caller.
        case forbidden
    }

    package var reason: Reason {
        switch self {
        case .notFound, .gone: .notFound
        case .otherConfiguration: .otherConfiguration
        case .ended: .ended
        case .otherGeneration: .otherGeneration
        case .contentType: .contentType
        case .emptyBody, .notJSON, .emptyArray, .notUTF8: .content
        case .staleEpoch: .fenced
        case .epochMustBeginAtZero, .epochTooFar, .sequenceGap, .sequenceRegression: .order
        case .streamTooLarge: .tooLarge
        case .tooManyProducers: .tooManyProducers
        case .tooMuch: .full
        case .overShare: .share
        case .noRoom: .disk
        case .closeFailed: .row
        case .unavailable: .unavailable
        }
    }
}
