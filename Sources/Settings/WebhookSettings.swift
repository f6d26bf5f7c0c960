/// What `webhooks` says.
package struct WebhookSettings: Sendable {
    /// Nil: no backend is told anything.
    package let url: String?
    package let secret: String?
    package let queue: Int

    init(_ values: EffectiveValues) {
        url = values.text(.webhooksURL)
        secret = values.text(.webhooksSecret)
        queue = values.integer(.webhooksQueue)
    }
}
