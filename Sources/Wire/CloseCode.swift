/// The WebSocket close codes the hub uses (RFC 6455, section 7.4.1, and the IANA registry).
///
/// All are below 4000: supabase-swift never comes back from a code of 4000 and above.
package enum CloseCode: UInt16, Sendable, CaseIterable {
    case normal = 1000
    case goingAway = 1001
    case protocolError = 1002
    case invalidData = 1007
    case messageTooBig = 1009
    case serviceRestart = 1012
    case tryAgainLater = 1013
}
