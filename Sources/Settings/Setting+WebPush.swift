/// Notifications of browsers (Web Push).
extension Setting {
    static let webPushPrivateKey = Setting(
        "web_push.private_key", .template, standard: nil, isSecret: true,
        "The key by which the push services of browsers know the hub (VAPID): `roost push keys` makes one. Browsers subscribe "
            + "for its public half, which GET /api/push/key says; with another key, all have to subscribe again. With this "
            + "and web_push.subject, the hub sends pushes to browsers.")

    static let webPushSubject = Setting(
        "web_push.subject", .template, standard: nil,
        "Whom a push service may write to when something is wrong: mailto:ADDRESS, or an https:// URL.")

    static let webPushNetworks = Setting(
        "web_push.networks", .networks, standard: nil,
        "Networks of your own in which push services may be, on any port, such as 10.1.2.0/24. Where a browser's messages go is "
            + "what the browser says: when this is not set, the hub connects to port 443 of public addresses alone.")

    static let webPushCAFile = Setting(
        "web_push.ca_file", .path, standard: nil,
        "A PEM file with the certificate authorities that push services of browsers are checked against; when it is not set, "
            + "the system's.")
}
