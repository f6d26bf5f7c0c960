package import Wire

/// All that follows from the records of a stream that are not kept any more.
package struct StreamCheckpoint: Sendable, Equatable {
    /// The earliest offset that is kept.
    package let start: Int
    package let producers: [Name: Producer]
    /// The greatest `Stream-Seq`.
    package let sequence: String?
    package let wasHeld: Bool
    /// How often its end was to be committed with a row: no number is used twice.
    package let attempts: Int

    package struct Producer: Sendable, Equatable {
        package var epoch: Int
        package var sequence: Int
        /// The stream's end behind its last append.
        package var end: Int

        package init(epoch: Int, sequence: Int, end: Int) {
            self.epoch = epoch
            self.sequence = sequence
            self.end = end
        }
    }

    package init(start: Int, producers: [Name: Producer], sequence: String?, wasHeld: Bool, attempts: Int) {
        self.start = start
        self.producers = producers
        self.sequence = sequence
        self.wasHeld = wasHeld
        self.attempts = attempts
    }
}
