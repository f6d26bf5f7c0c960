import Wire

/// The join option `config.postgres_changes_options {wait, timeout}`: the reply waits until the row changes are
/// certainly served, and is an error if they are not (supabase/realtime PR 2109, since 2.130; supabase-js 2.113,
/// supabase-swift, realtime-go).
enum ChangesWait {
    /// In milliseconds, as in the original: clients send heartbeats every 30 s and should not wait longer than that.
    private static let usual: Int64 = 15_000
    private static let longest: Int64 = 20_000

    /// Returns how long the reply may wait; nil if the join did not ask for it. An invalid timeout is ignored, as in
    /// the original.
    static func milliseconds(_ options: JSON?) -> Int64? {
        guard JoinConfig.flag(options?["wait"]) else { return nil }
        guard let timeout = options?["timeout"]?.int, timeout > 0 else { return usual }
        return min(Int64(timeout), longest)
    }
}

extension ChangeGroup {
    /// The reason why some requested changes are not served; nil if all are, or if that is not known yet.
    var fault: String? {
        switch state {
        case .registering: nil
        case .live: complaints.first(where: \.isError)?.message
        case .failed(let message): message
        }
    }
}

extension Membership {
    /// Milliseconds that the join's answer may wait for row changes, as the join asked.
    var changesWait: Int64? { rows == nil ? nil : pending?.changesWait }

    /// The refusal of a join that waits for its row changes; nil if they are served, or if it does not wait for them.
    var faultOfWait: Refusal? {
        guard changesWait != nil, let fault = group?.fault else { return nil }
        return .invalidBinding(fault)
    }
}
