/// Pushes to phones through Apple's service (APNs): the key, the texts of alerts, the contents of Live Activities.
extension Setting {
    static let apnsTopic = Setting(
        "apns.topic", .bundle, standard: nil, alias: "IOS_LIVE_ACTIVITY_TOPIC",
        "The app's bundle id, which is its topic at Apple. With this and the three settings that follow, the hub sends "
            + "pushes.")

    static let apnsTeam = Setting(
        "apns.team_id", .code(length: 10), standard: nil, alias: "IOS_LIVE_ACTIVITY_TEAM_ID",
        "The team that the key belongs to, as Apple's developer site shows it under Membership.")

    static let apnsKeyID = Setting(
        "apns.key_id", .code(length: 10), standard: nil, alias: "IOS_LIVE_ACTIVITY_KEY_ID",
        "The key's id, as Apple's developer site shows it under Keys; it is also in the name of the file.")

    static let apnsPrivateKey = Setting(
        "apns.private_key", .pem, standard: nil, isSecret: true, alias: "IOS_LIVE_ACTIVITY_PRIVATE_KEY",
        "The key itself: the text of the file AuthKey_ID.p8, line breaks as they are or written as \\n. It is safer in "
            + "the environment than in a file.")

    static let apnsEnvironment = Setting(
        "apns.environment", .choice(["sandbox", "production"]), standard: .text("production"),
        alias: "IOS_LIVE_ACTIVITY_ENV",
        "Where a token is tried first if its registration does not say: sandbox for apps installed from Xcode, production "
            + "for TestFlight and the App Store. A token that Apple does not know there is tried in the other one, once."
    )

    static let apnsURL = Setting(
        "apns.url", .webURL, standard: nil,
        "Send all pushes there instead of to Apple: a proxy, or a stand-in for tests such as `make apns-standin`.")

    static let apnsSandboxURL = Setting(
        "apns.sandbox_url", .webURL, standard: nil,
        "Send the sandbox's pushes there, if apns.url is for production alone; when it is not set, apns.url is for both."
    )

    static let apnsCAFile = Setting(
        "apns.ca_file", .path, standard: nil,
        "A PEM file with the certificate authorities that the server of pushes is checked against; when it is not set, "
            + "the system's."
    )

    static let apnsQueue = Setting(
        "apns.queue", .integer(100...1_000_000), standard: .integer(10_000), unit: "pushes",
        "How many pushes may wait in memory for Apple. Alerts beyond that wait in the database, and of each Live Activity "
            + "only the newest state does.")

    static let activityTopic = Setting(
        "live_activity.topic", .template, standard: .text("conversation:{conversation_id}"),
        "The channel of a conversation, which shows who types and who is online.")

    static let activityState = Setting(
        "live_activity.content_state", .json,
        standard: .text(
            #"{"conversationId":"{conversation_id}","conversationName":"{conversation_name}","sender":"{sender_name}","#
                + #""preview":"{preview}","unread":"{unread}","typing":"{typing}","online":"{online_count}","#
                + #""connected":"{connected}","version":"{version}"}"#), isReloaded: true,
        "The content that a Live Activity is sent, as JSON. A text that is one {variable} and nothing else becomes "
            + "that variable with its own type; docs/push.md has the variables.")

    static let activityFacts = Setting(
        "live_activity.facts", .query, standard: nil,
        "The statement that says how a conversation stands for the user of a Live Activity: $1 text is the user, $2 "
            + "text the conversation; it runs as that user and returns what alerts.audience does, or no row if the "
            + "user is not in the conversation. When it is not set, an activity waits for the next message; "
            + "docs/push.md has one for the sample chat.")

    static let activityRefresh = Setting(
        "live_activity.refresh_seconds", .integer(1...3600), standard: .integer(30), unit: "seconds", isReloaded: true,
        "How often live_activity.facts is asked again about each Live Activity: a user may have read on another device, or "
            + "have left the conversation, and no message says so.")

    static let activityPreview = Setting(
        "live_activity.preview_characters", .integer(1...1000), standard: .integer(100), unit: "characters",
        isReloaded: true,
        "How much of a message {preview} shows, also in alerts.")

    static let activityDebounce = Setting(
        "live_activity.debounce_milliseconds", .integer(0...60_000), standard: .integer(2000), unit: "milliseconds",
        isReloaded: true,
        "How long a Live Activity is left alone after a change, in case there is another: one push then shows both.")

    static let activityCeiling = Setting(
        "live_activity.ceiling_milliseconds", .integer(0...600_000), standard: .integer(10_000), unit: "milliseconds",
        isReloaded: true,
        "How long continuing changes may delay a push.")

    static let activityStale = Setting(
        "live_activity.stale_minutes", .integer(1...480), standard: .integer(15), unit: "minutes", isReloaded: true,
        "After how long without a push the phone shows a Live Activity as out of date.")

    static let activityHours = Setting(
        "live_activity.hours", .integer(1...8), standard: .integer(8), unit: "hours", isReloaded: true,
        "How long a Live Activity lives; then the hub ends it. Apple ends them after 8.")

    static let alertTables = Setting(
        "alerts.tables", .tables, standard: .text("public.messages"),
        "The tables, separated by commas as SCHEMA.TABLE, whose new rows are messages: readers who are away get an "
            + "alert, and Live Activities show them. The tables have to be watched.")

    static let alertTimed = Setting(
        "alerts.timed", .timedColumns, standard: nil,
        "Columns that say when their rows are pushed, as SCHEMA.TABLE.COLUMN, each perhaps with unless and an SQL condition "
            + "on rows that need no push any more; with semicolons or line breaks between them. The column is a timestamptz, "
            + "or a timestamp or date in UTC; the tables have to be watched. alerts.audience says who hears of a row.")

    static let alertAudience = Setting(
        "alerts.audience", .query, standard: nil,
        "The statement that says who is alerted of new messages: $1 jsonb is a list of {row, schema, table, record}; "
            + "it returns row, user_id and what the templates use. When it is not set, nobody is alerted; docs/push.md "
            + "has one for the sample chat.")

    static let alertWhen = Setting(
        "alerts.when", .choice(["unseen", "unreceived", "away"]), standard: .text("unseen"), isReloaded: true,
        "Whom an alert is for: unseen, whoever has not certainly been shown the message by an app on the screen; unreceived, "
            + "whoever has not certainly received it; away, whoever has no open socket.")

    static let alertDevices = Setting(
        "alerts.devices", .choice(["together", "each"]), standard: .text("together"), isReloaded: true,
        "Whether what one device of a user's shows is pushed to the user's other phones: together, it is not; each, it is, as "
            + "each phone is judged by what its own app proves. A phone is known by the session_id of the tokens that it "
            + "registers and connects with.")

    static let alertProofSeconds = Setting(
        "alerts.proof_seconds", .integer(1...60), standard: .integer(5), unit: "seconds", isReloaded: true,
        "How long an app that was sent a message has to prove that it arrived, before its user is alerted.")

    static let alertReadPosition = Setting(
        "alerts.read_position", .columns, standard: nil,
        "The columns that say up to where a user has read a conversation, separated by commas as SCHEMA.TABLE.COLUMN, such as "
            + "public.conversation_participants.last_read_at. When one moves, waiting alerts of what is read are withdrawn. "
            + "The tables have to be watched.")

    static let alertReadUser = Setting(
        "alerts.read_user", .name, standard: .text("user_id"),
        "The column of those tables that holds the user's id.")

    static let alertReadConversation = Setting(
        "alerts.read_conversation", .name, standard: .text("conversation_id"),
        "The column of those tables that holds the conversation, as the column conversation_id of alerts.audience has it."
    )

    static let alertReadMessage = Setting(
        "alerts.read_message", .name, standard: .text("created_at"),
        "The column of alerts.tables that the position is compared with: created_at for a time, id for the last message read."
    )

    static let alertBadge = Setting(
        "alerts.badge", .query, standard: nil,
        "The statement that says what the icons of users show: $1 text[] are users; it returns user_id and badge. With it, "
            + "what a user reads on one device changes the icons of the others. docs/push.md has one for the sample chat."
    )

    static let alertBadgesPerMinute = Setting(
        "alerts.badges_per_minute", .integer(1...60), standard: .integer(6), unit: "pushes", isReloaded: true,
        "How many such numbers a user's phones are told in a minute at most. The last one is always told.")
    static let alertTokens = Setting(
        "alerts.tokens", .query, standard: nil,
        "The statement that reads phones from a table of your application's: $1 text[] are users; it returns user_id and "
            + "token, and environment and bundle where you have them. When it is not set, phones are those that were "
            + "registered at the hub; docs/push.md says what to think of.")

    static let alertTemplates = Setting(
        "alerts.templates", .json, standard: nil, isReloaded: true,
        "What alerts about the rows of single tables say otherwise, by SCHEMA.TABLE: a section may have title, subtitle, "
            + "body, title_key, title_arguments, body_key, body_arguments, sound, category, interruption_level, "
            + "relevance_score, thread and payload, and for the rest what follows here counts.")

    static let alertTitle = Setting(
        "alerts.title", .template, standard: .text("{conversation_name}"), isReloaded: true,
        "The first line of an alert.")

    static let alertBody = Setting(
        "alerts.body", .template, standard: .text("{sender_name}: {preview}"), isReloaded: true, "The text of an alert."
    )

    static let alertTitleKey = Setting(
        "alerts.title_key", .template, standard: nil, isReloaded: true,
        "The key of the title in the app's Localizable.strings, in place of the title.")

    static let alertTitleArguments = Setting(
        "alerts.title_arguments", .template, standard: nil, isReloaded: true,
        "The values for the placeholders of the localized title, separated by |.")

    static let alertBodyKey = Setting(
        "alerts.body_key", .template, standard: nil, isReloaded: true,
        "The key of the text in the app's Localizable.strings, in place of the text.")

    static let alertBodyArguments = Setting(
        "alerts.body_arguments", .template, standard: nil, isReloaded: true,
        "The values for the placeholders of the localized text, separated by |.")

    static let alertSound = Setting(
        "alerts.sound", .template, standard: .text("default"), isReloaded: true,
        "The sound of an alert: default, or a file of the app's."
    )

    static let alertHours = Setting(
        "alerts.hours", .integer(1...720), standard: .integer(24), unit: "hours", isReloaded: true,
        "How long an alert is worth delivering: it is kept this long for a phone that is off, and for Apple while it "
            + "cannot be reached.")
}
