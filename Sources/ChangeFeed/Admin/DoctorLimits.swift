/// From where on the doctor finds something worth a word.
package struct DoctorLimits: Sendable {
    /// How long a transaction may be open; meanwhile vacuum cleans nothing up that is younger.
    package var transaction: Duration = .seconds(300)
    /// How late pruning may be behind the retention; the hub prunes once a minute.
    package var pruning: Duration = .seconds(600)
    /// Dead rows of the outbox, where they are more than the living ones.
    package var deadRows = 100_000
    /// Bytes of WAL that a standby may have to replay, or that a slot without a reader may keep: four segments.
    package var walBytes = 67_108_864
    /// How far behind a standby may be.
    package var standby: Duration = .seconds(30)

    package init() {}
}
