import Hub
import Logging
import Ops
import Settings
import Webhooks

extension RoostConfiguration {
    /// The service that sends webhooks; nil if `webhooks.url` is not set.
    ///
    /// - Throws: `RunFailure` with the remedy.
    func webhookService(_ happenings: Happenings?, _ logger: Logger) throws -> WebhookService? {
        guard let happenings, let url = webhooks.url else { return nil }
        guard let secret = webhooks.secret else {
            throw RunFailure(
                "webhooks.url is set and webhooks.secret (ROOST_WEBHOOKS_SECRET) is not: a backend cannot tell who calls it. "
                    + "Set it to whsec_ and the output of `openssl rand -base64 32`.", .configuration)
        }
        guard let key = WebhookSecret(secret) else {
            throw RunFailure(
                "webhooks.secret must be whsec_ and the base64 of 24 bytes or more, such as `openssl rand -base64 32` prints.",
                .configuration)
        }
        return WebhookService(
            WebhookService.Setup(url: url, secret: key, node: nodeName), happenings, logger: logger)
    }
}

extension WebhookService.Statistics {
    var figures: [Figure] {
        [
            Figure("roost_webhook_events_waiting", .gauge, "Events that wait for webhooks.url.", waiting),
            Figure(
                "roost_webhook_attempts_failed_total", .counter, "Messages that webhooks.url did not take at once.",
                attemptsFailed),
        ]
            + Figure.labelledFigures(
                "roost_webhook_events_total", .counter, "Events, by result.", "result",
                ["sent": sent, "lost": lost, "missed": missed])
    }
}
