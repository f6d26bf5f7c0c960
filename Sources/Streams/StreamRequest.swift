package import Wire

/// What is asked of a stream. Rights are decided before.
package enum StreamRequest: Sendable {
    /// Makes it, or finds that it is there with the same configuration.
    ///
    /// - Parameter isNext: one that has ended gives way to a new generation (`StreamID`).
    case create(StreamConfiguration, body: [UInt8], closes: Bool, isNext: Bool)
    case append(StreamAppend)
    /// The fence: the end is where it is now. Of this generation alone, if one is named; so is `delete`. By whoever asks for it; nil for
    /// an operator.
    case cancel(StreamID?, by: StreamBearer?)
    case delete(StreamID?)
    /// The producer of this generation gave up: it ends as `aborted`.
    case abort(StreamID)
    /// A producer holds a connection by which it appends from here on.
    case hold(StreamHold)
    /// That connection ended. A fault where nobody said that it would: its producer is taken for gone at once.
    case release(StreamHold, isFault: Bool)
    /// Somebody read it, which lengthens an idle lifetime.
    case touch
}

/// Bytes for a stream's end, its close, or both.
package struct StreamAppend: Sendable {
    /// In JSON mode one message or an array of them, as the client wrote them.
    package var body: [UInt8]
    /// Nil where the way it came has none; it is the stream's then.
    package var contentType: String?
    package var closes = false
    package var producer: ProducerStamp?
    /// `Stream-Generation`: the only one that it may be appended to; nil for whichever there is.
    package var generation: StreamID?
    /// `Stream-Seq`: grows from one append to the next, compared byte by byte.
    package var sequence: String?
    /// By whose rights the statement of `streams.on_close` runs.
    package var bearer: StreamBearer?

    package init(body: [UInt8]) { self.body = body }
}

/// `Producer-Id`, `Producer-Epoch` and `Producer-Seq` of an append (Durable Streams, idempotent producers).
package struct ProducerStamp: Sendable, Equatable {
    package let id: Name
    /// Up to `largest`; so is `sequence`.
    package let epoch: Int
    /// Of this request, from zero in each epoch.
    package let sequence: Int

    package init(id: Name, epoch: Int, sequence: Int) {
        self.id = id
        self.epoch = epoch
        self.sequence = sequence
    }

    /// What JavaScript's numbers hold exactly.
    package static let largest = 1 << 53 - 1

    /// As somebody else says it; nil where it is none.
    package init?(told id: String, epoch: Int, sequence: Int) {
        guard !id.isEmpty, id.utf8.count <= 200, 0...Self.largest ~= epoch, 0...Self.largest ~= sequence else {
            return nil
        }
        self.init(id: Name(id), epoch: epoch, sequence: sequence)
    }
}

/// Who ends a stream, as Postgres is told: `role`, and `request.jwt.claims`.
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
    /// Negative of a long request, positive of a member of the stream's channel.
    package let serial: Int

    package var isRequest: Bool { serial < 0 }

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What became of a request.
package enum StreamAnswer: Sendable {
    case created(StreamSnapshot)
    /// It was there already, made alike.
    case existed(StreamSnapshot)
    /// `isRepeated`: the producer had sent this before, and nothing was appended now. `stamp`: as the producer's state is now.
    case appended(StreamSnapshot, isRepeated: Bool, stamp: ProducerStamp?)
    /// Cancelled, deleted, held, released or touched.
    case done(StreamSnapshot?)
    case refused(StreamRefusal)
}

/// Why a request is refused. `docs/errors.md` has what clients do then.
package enum StreamRefusal: Error, Sendable, Equatable {
    case notFound
    /// Deleted, or beyond its lifetime, a moment ago.
    case gone
    /// There is one of this name that was made otherwise.
    case otherConfiguration
    /// It ended: `409` with the final offset.
    case ended(StreamSnapshot)
    /// The name has another generation than the one that was meant: `409` with that one's id.
    case otherGeneration(StreamSnapshot)
    case contentType(expected: String)
    case emptyBody
    case notJSON
    case emptyArray
    case notUTF8
    /// `403`: a younger incarnation of this producer has written, or its lease ran out.
    case staleEpoch(current: Int)
    /// A new epoch begins with the sequence zero.
    case epochMustBeginAtZero
    /// So far ahead that nobody could follow.
    case epochTooFar(most: Int)
    case sequenceGap(expected: Int, received: Int)
    /// `Stream-Seq` did not grow.
    case sequenceRegression
    /// More than `streams.bytes` in one stream.
    case streamTooLarge(limit: Int)
    /// One stream remembers no more producers.
    case tooManyProducers
    /// All streams together hold `streams.total_bytes`, or there are `streams.count` of them.
    case tooMuch(limit: String)
    /// Its owner has as much as one may have.
    case overShare(limit: String)
    /// Nothing can be written: the disk is full.
    case noRoom
    /// The statement of `streams.on_close` failed; the stream is open still. Postgres' sentence, and whose statement it is.
    case closeFailed(String)
    /// The database, or what keeps streams, cannot be asked now.
    case unavailable
}

extension StreamRefusal {
    /// What refusals are counted by: the values of a metric's label, which stay the same when sentences change.
    package enum Reason: String, Sendable, CaseIterable {
        case notFound = "not_found"
        case otherConfiguration = "other_configuration"
        case ended
        case otherGeneration = "other_generation"
        case contentType = "content_type"
        case content
        /// An older incarnation of a producer, or one whose lease ran out.
        case fenced
        case order
        case tooLarge = "too_large"
        /// Of one stream.
        case tooManyProducers = "too_many_producers"
        /// Of all streams together.
        case full
        /// Of those of one owner.
        case share
        case disk
        case row
        case unavailable
        /// The policies said no. Whoever asks them counts these.
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
