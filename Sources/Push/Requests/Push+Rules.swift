extension Push {
    /// What it comes to without being sent; nil where it can be sent.
    ///
    /// The reasons are those that APNs would give.
    var outcomeUnsent: PushOutcome? {
        if payload.isEmpty { return .refused(status: 400, reason: "PayloadEmpty") }
        if payload.count > target.payloadLimit { return .tooLarge(bytes: payload.count, limit: target.payloadLimit) }
        if let collapseID, collapseID.utf8.count > CollapseID.limit || !Self.fitsHeader(collapseID) {
            return .refused(status: 400, reason: "BadCollapseId")
        }
        switch target {
        case .device(let destination):
            return Self.fitsHeader(destination.bundle) ? nil : .refused(status: 400, reason: "BadTopic")
        case .channel(let id, _, let bundle):
            guard Self.fitsHeader(bundle), !bundle.utf8.contains(UInt8(ascii: "/")) else {
                return .refused(status: 400, reason: "BadTopic")
            }
            return Self.fitsHeader(id) ? nil : .refused(status: 400, reason: "BadChannelId")
        }
    }

    /// Also nothing that could end a header and begin another.
    private static func fitsHeader(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.count <= 256 && value.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
