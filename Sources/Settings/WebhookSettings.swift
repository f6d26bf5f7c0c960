/// The settings of `webhooks`.
package struct WebhookSettings: Sendable {
    /// Nil: no webhooks are sent.
    package let url: String?
    package let secret: String?
    package let queue: Int

    init(_ values: EffectiveValues) {
        url = values.text(.webhooksURL)
        secret = values.text(.webhooksSecret)
        queue = values.integer(.webhooksQueue)
    }
}
