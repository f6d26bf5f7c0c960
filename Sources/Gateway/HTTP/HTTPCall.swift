import HTTP

/// A request on its way to being answered.
struct HTTPCall {
    var request: HTTPRequest
    let isOps: Bool
    /// Of the page that asks; nil for what is no page.
    let origin: String?
    /// Who sends messages by it, once that is verified.
    var sender: BroadcastAPI.Sender?

    init(_ head: some RequestHead, isOps: Bool) {
        request = HTTPRequest(head)
        self.isOps = isOps
        origin = request.origin
    }
}
