/// What is set of pushes, alerts and Live Activities.
package struct PushSettings: Sendable {
    /// The four that sending takes; nil where one is missing.
    package struct Key: Sendable {
        package let team: String
        package let id: String
        /// As it was set: line breaks may be written as `\n`.
        package let pem: String
    }

    /// The bundle id; nil where nothing is to be sent.
    package let topic: String?
    package let key: Key?
    /// `sandbox` or `production`.
    package let environment: String
    package let url: String?
    package let sandboxURL: String?
    package let caFile: String?
    package let queue: Int

    /// A file; nil where nothing is sent to Android.
    package let serviceAccount: String?
    package let fcmURL: String?
    package let fcmCAFile: String?
    /// Nil for the app's default.
    package let androidChannel: String?
    package let isDataOnly: Bool

    package let activityTopic: String
    package let activityState: String
    /// Nil: an activity waits for its conversation's next message.
    package let facts: String?
    package let factsSeconds: Int
    package let previewCharacters: Int
    package let debounceMilliseconds: Int
    package let ceilingMilliseconds: Int
    package let staleMinutes: Int
    package let activityHours: Int

    /// `SCHEMA.TABLE`.
    package let alertTables: [String]
    /// As it was set; nil: no rows are pushed at a time of theirs.
    package let timed: String?
    /// Nil: nobody is alerted.
    package let audience: String?
    /// Nil: the application keeps no phones.
    package let tokens: String?
    /// A JSON object; nil: alerts about all tables say the same.
    package let templates: String?
    package let title: String
    package let body: String
    package let titleKey: String?
    package let titleArguments: [String]
    package let bodyKey: String?
    package let bodyArguments: [String]
    package let sound: String
    package let alertHours: Int
    package let alertWhen: String
    package let alertDevices: String
    package let alertProofSeconds: Int
    /// `SCHEMA.TABLE.COLUMN`.
    package let readPositions: [String]
    package let readUser: String
    package let readConversation: String
    package let readMessage: String
    /// Nil: icons follow alerts alone.
    package let badge: String?
    package let badgesPerMinute: Int

    /// Nil: nobody is told who received what.
    package let receiptsStatement: String?
    /// `SCHEMA.TABLE`.
    package let receiptsTables: [String]

    init(_ values: EffectiveValues) throws(ConfigurationError) {
        topic = values.text(.apnsTopic).map(Self.bundle)
        let team = values.text(.apnsTeam)
        let id = values.text(.apnsKeyID)
        let pem = values.text(.apnsPrivateKey)
        if let team, let id, let pem { key = Key(team: team, id: id, pem: pem) } else { key = nil }
        environment = values.requiredText(.apnsEnvironment)
        url = values.text(.apnsURL)
        sandboxURL = values.text(.apnsSandboxURL)
        caFile = values.text(.apnsCAFile)
        queue = values.integer(.apnsQueue)
        serviceAccount = values.text(.fcmServiceAccount)
        fcmURL = values.text(.fcmURL)
        fcmCAFile = values.text(.fcmCAFile)
        androidChannel = values.text(.fcmChannel)
        isDataOnly = values.toggle(.fcmDataOnly)
        activityTopic = values.requiredText(.activityTopic)
        activityState = values.requiredText(.activityState)
        facts = values.text(.activityFacts)
        factsSeconds = values.integer(.activityRefresh)
        previewCharacters = values.integer(.activityPreview)
        debounceMilliseconds = values.integer(.activityDebounce)
        ceilingMilliseconds = values.integer(.activityCeiling)
        staleMinutes = values.integer(.activityStale)
        activityHours = values.integer(.activityHours)
        alertTables = values.words(.alertTables)
        timed = values.text(.alertTimed)
        audience = values.text(.alertAudience)
        tokens = values.text(.alertTokens)
        templates = values.text(.alertTemplates)
        title = values.requiredText(.alertTitle)
        body = values.requiredText(.alertBody)
        titleKey = values.text(.alertTitleKey)
        titleArguments = Self.list(values.text(.alertTitleArguments))
        bodyKey = values.text(.alertBodyKey)
        bodyArguments = Self.list(values.text(.alertBodyArguments))
        sound = values.requiredText(.alertSound)
        alertHours = values.integer(.alertHours)
        alertWhen = values.requiredText(.alertWhen)
        alertDevices = values.requiredText(.alertDevices)
        alertProofSeconds = values.integer(.alertProofSeconds)
        readPositions = values.words(.alertReadPosition)
        readUser = values.requiredText(.alertReadUser)
        readConversation = values.requiredText(.alertReadConversation)
        readMessage = values.requiredText(.alertReadMessage)
        badge = values.text(.alertBadge)
        badgesPerMinute = values.integer(.alertBadgesPerMinute)
        receiptsStatement = values.text(.receiptsStatement)
        let tables = values.words(.receiptsTables)
        receiptsTables = tables.isEmpty ? alertTables : tables
        try Self.checkWhole(values)
    }

    /// Whether devices of any kind are sent anything.
    package var isAnythingSent: Bool { topic != nil || serviceAccount != nil }

    /// Some of the four and not all are a slip: nothing would be sent, and nobody would know why.
    private static func checkWhole(_ values: EffectiveValues) throws(ConfigurationError) {
        let four = [Setting.apnsTopic, .apnsTeam, .apnsKeyID, .apnsPrivateKey]
        let missing = four.filter { values.text($0) == nil }
        if !missing.isEmpty, missing.count < four.count, let set = four.first(where: { values.text($0) != nil }) {
            throw ConfigurationError(
                message: "\(set.key) is set (\(values[set].origin)) and \(missing.map(\.key).joined(separator: ", ")) "
                    + "\(missing.count == 1 ? "is" : "are") not; pushes take all four of apns.topic, apns.team_id, "
                    + "apns.key_id and apns.private_key.")
        }
        if values.integer(.activityCeiling) < values.integer(.activityDebounce) {
            throw values.conflict(
                .activityCeiling, .activityDebounce, "must not be less than", "which it is the ceiling of")
        }
    }

    /// Some write the topic of Live Activities' requests, which is the bundle id and more.
    private static func bundle(_ text: String) -> String {
        let suffix = ".push-type.liveactivity"
        return text.hasSuffix(suffix) ? String(text.dropLast(suffix.count)) : text
    }

    private static func list(_ text: String?) -> [String] {
        text?.split(separator: "|", omittingEmptySubsequences: false).map(String.init) ?? []
    }
}
