import Hub
import Settings

/// Presence and typing in the words of the hub.
extension RoostConfiguration {
    var presence: PresenceRules {
        var rules = PresenceRules()
        rules.windows = Self.windows(graceActive, graceInactive, graceBackground)
        rules.topics = graceTopics.map {
            (TopicPattern($0.pattern), Self.windows($0.active, $0.inactive, $0.background))
        }
        rules.listedMembers = listedMembers
        rules.listedBytes = listedBytes
        rules.totalBytes = totalListedBytes
        rules.payloadBytes = presenceBytes
        rules.mergeInterval = Int64(mergeMilliseconds)
        return rules
    }

    var typing: TypingRules {
        var rules = TypingRules()
        rules.isOn = typingEnabled
        rules.shown = typingShown
        rules.endings = typingEndedBy.compactMap { TypingRules.Ending($0) }
        return rules
    }

    private static func windows(_ active: Int, _ inactive: Int, _ background: Int) -> GraceWindows {
        GraceWindows(
            active: Int64(active) * 1000, inactive: Int64(inactive) * 1000, background: Int64(background) * 1000)
    }
}
