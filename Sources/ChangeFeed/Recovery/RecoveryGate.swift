import Hub

/// For whom among a group's subscribers a change of a batch is meant: while many catch up from many places, not everybody
/// lacks the same.
struct RecoveryGate {
    /// Whether a group, which is one member here, lacks the change at a place of the batch.
    let lacks: (ChangeGroupID, Int) -> Bool
    let cursor: (ChangeGroupID, Int) -> String
}
