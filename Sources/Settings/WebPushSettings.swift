/// The settings under `web_push`.
package struct WebPushSettings: Sendable {
    /// Nil: nothing is sent to browsers.
    package var privateKey: String?
    package var subject: String?
    /// Addresses, networks in CIDR's notation.
    package let networks: [String]
    package let caFile: String?

    init(_ values: EffectiveValues) {
        privateKey = values.text(.webPushPrivateKey)
        subject = values.text(.webPushSubject)
        networks = values.words(.webPushNetworks)
        caFile = values.text(.webPushCAFile)
    }
}
