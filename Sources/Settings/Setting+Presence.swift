/// Presence, typing, and users' online status.
extension Setting {
    static let graceActive = Setting(
        "presence.grace_active_seconds", .integer(0...120), standard: .integer(2), unit: "seconds", isReloaded: true,
        "How long a client that was cut off counts as present if its app was in the foreground or did not say. A "
            + "client that comes back in time with the same key was never gone; a leave ends it at once.")

    static let graceInactive = Setting(
        "presence.grace_inactive_seconds", .integer(0...120), standard: .integer(12), unit: "seconds", isReloaded: true,
        "The same while its app is inactive: a phone that is locked, or shows a call.")

    static let graceBackground = Setting(
        "presence.grace_background_seconds", .integer(0...120), standard: .integer(20), unit: "seconds",
        isReloaded: true,
        "The same while its app is in the background, where iOS pauses its network.")

    static let graceTopics = Setting(
        "presence.grace_topics", .windows, standard: nil, isReloaded: true,
        "Other windows for some topics, separated by commas: PATTERN=ACTIVE/INACTIVE/BACKGROUND in seconds, "
            + "such as live:*=0/0/0, room:*=5/30/60. The first that fits counts.")

    static let restartSeconds = Setting(
        "presence.restart_seconds", .integer(0...600), standard: .integer(30), unit: "seconds",
        "How long those who were present when the hub stopped, or was killed, may take to come back before the others "
            + "are told that they are gone.")

    static let mergeMilliseconds = Setting(
        "presence.merge_milliseconds", .integer(0...10_000), standard: .integer(100), unit: "milliseconds",
        isReloaded: true,
        "In channels of 32 members or more, changes of presence are sent together: the first at once, then one message "
            + "in this many milliseconds. 0: each by itself.")

    static let listedMembers = Setting(
        "presence.listed_members", .integer(0...1_000_000), standard: .integer(10_000), unit: "members",
        isReloaded: true,
        "How many members of a channel are listed. Members who come when the list is full are counted but not shown.")

    static let listedBytes = Setting(
        "presence.listed_bytes", .integer(0...268_435_456), standard: .integer(1_000_000), unit: "bytes",
        isReloaded: true,
        "How large a channel's list may be, with the same effect. Python clients accept no message over 1 MiB.")

    static let totalListedBytes = Setting(
        "presence.total_bytes", .integer(0...8_589_934_592), standard: .integer(268_435_456), unit: "bytes",
        isReloaded: true,
        "How large the lists of all channels may be together, with the same effect. Each event loop has a copy of them."
    )

    static let typingEnabled = Setting(
        "typing.enabled", .toggle, standard: .toggle(true), isReloaded: true,
        "Understand broadcasts of the event `typing`: repeated starts are thinned out, and the hub ends what the "
            + "client does not. When it is off, they are passed on like any other.")

    static let typingShown = Setting(
        "typing.shown", .integer(1...1000), standard: .integer(20), unit: "users", isReloaded: true,
        "Of how many users a channel is told at once that they type, and how many starts it is told of in a "
            + "second.")

    static let typingEndedBy = Setting(
        "typing.ended_by", .columns,
        standard: .text("public.messages.sender_id, public.messages.user_id, public.messages.author_id"),
        isReloaded: true,
        "Tables whose inserts end the typing of their author, separated by commas: SCHEMA.TABLE.COLUMN, where the "
            + "column holds the user's id, which is the claim `sub` of the token.")

    static let usersStatement = Setting(
        "users.statement", .statement, standard: nil,
        "The statement that records which users are online, in batches: $1 text[] their ids (the claim `sub`), $2 "
            + "boolean[] whether they came, $3 timestamptz[] when. When it is not set, nothing is written; "
            + "docs/presence.md has one for the sample chat.")
}
