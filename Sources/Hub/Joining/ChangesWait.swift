import Wire

/// `config.postgres_changes_options {wait, timeout}`: the reply to the join waits until its row changes are certainly served, and is an
/// error where they are not (supabase/realtime PR 2109, since 2.130; supabase-js 2.113, supabase-swift, realtime-go).
enum ChangesWait {
    /// In milliseconds, as the original's: clients send heartbeats every 30 s and are not to wait longer than that.
    private static let usual: Int64 = 15_000
    private static let longest: Int64 = 20_000

    /// How long the reply may wait; nil where the join did not ask for it. A timeout that is none counts as none, as in the original.
    static func milliseconds(_ options: JSON?) -> Int64? {
        guard JoinConfig.flag(options?["wait"]) else { return nil }
        guard let timeout = options?["timeout"]?.int, timeout > 0 else { return usual }
        return min(Int64(timeout), longest)
    }
}

extension ChangeGroup {
    /// Why what was asked for is not served, or not all of it; nil where it is, or while that is not known.
    var fault: String? {
        switch state {
        case .registering: nil
        case .live: complaints.first(where: \.isError)?.message
        case .failed(let message): message
        }
    }
}

extension Membership {
    /// Milliseconds for which the answer to its join waits for its row changes, as the join asked.
    var changesWait: Int64? { rows == nil ? nil : pending?.changesWait }

    /// Why a join that waits for its row changes is refused; nil where they are served, or it does not wait for them.
    var faultOfWait: Refusal? {
        guard changesWait != nil, let fault = group?.fault else { return nil }
        return .invalidBinding(fault)
    }
}
