extension AlertPayload {
    /// The JSON within Apple's limit. What is too long is cut between graphemes and ends with "…": the body first, then
    /// the subtitle, then the title, of localized lines the longest argument. Ids and keys are never cut: an error.
    package func fitted(to limit: Int = PayloadLimit.device) throws(PayloadError) -> (bytes: [UInt8], isCut: Bool) {
        var alert = self
        for line in [\AlertPayload.body, \.subtitle, \.title] {
            // A localized line may have several long arguments, each of which is cut once.
            while true {
                let bytes = alert.bytes
                if bytes.count <= limit { return (bytes, alert != self) }
                let shorter = alert[keyPath: line]?.shortened(by: bytes.count - limit)
                guard shorter != alert[keyPath: line] else { break }
                alert[keyPath: line] = shorter
            }
        }
        throw PayloadError.tooLarge(bytes: alert.size, limit: limit)
    }
}
