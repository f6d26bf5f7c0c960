/// Notifications of Android by Firebase Cloud Messaging: in whose name, and how they look.
extension Setting {
    static let fcmServiceAccount = Setting(
        "fcm.service_account", .path, standard: nil,
        "The JSON file of the service account that pushes to Android are sent with, as the Firebase console makes it under "
            + "Project settings, Service accounts. With it, the hub sends pushes to Android.")

    static let fcmChannel = Setting(
        "fcm.channel", .name, standard: nil, isReloaded: true,
        "The notification channel that alerts are shown in on Android 8 and later, which the app has to have made; when it is "
            + "not set, the app's default.")

    static let fcmDataOnly = Setting(
        "fcm.data_only", .toggle, standard: .toggle(false), isReloaded: true,
        "Send data alone, and have the app show alerts itself. It is woken for each, as for a high priority message, which "
            + "Android bears only if the user then sees something.")

    static let fcmURL = Setting(
        "fcm.url", .webURL, standard: nil,
        "Send pushes to Android there instead of to Google: a proxy, or a stand-in for tests such as `make fcm-standin`. "
            + "Access tokens come from the service account's token_uri.")

    static let fcmCAFile = Setting(
        "fcm.ca_file", .path, standard: nil,
        "A PEM file with the certificate authorities that both servers are checked against; when it is not set, the "
            + "system's.")
}
