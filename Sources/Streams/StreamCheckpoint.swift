package import Wire

/// Everything that follows from a stream's records that are no longer kept.
package struct StreamCheckpoint: Sendable, Equatable {
    /// The earliest offset kept.
    package let start: Int
    package let producers: [Name: Producer]
    /// The greatest `Stream-Seq`.
    package let sequence: String?
    package let wasHeld: Bool
    /// The number of attempts to commit its end with a row: no number is used twice.
    package let attempts: Int

    package struct Producer: Sendable, Equatable {
        package var epoch: Int
        package var sequence: Int
        /// The stream's end after the producer's last append.
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
