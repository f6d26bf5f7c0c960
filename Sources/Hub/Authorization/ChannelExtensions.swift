/// What the policies of a private channel tell apart: the values of `realtime.messages.extension` (wire-protocol B).
package struct ChannelExtensions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let broadcast = ChannelExtensions(rawValue: 1)
    package static let presence = ChannelExtensions(rawValue: 2)
    package static let all: ChannelExtensions = [.broadcast, .presence]
}
