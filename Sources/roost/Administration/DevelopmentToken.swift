import Identity

/// `roost token`.
enum DevelopmentToken {
    static func mint(secret: String, role: String, subject: String?, lifetime: Int) -> String {
        SharedSecret(secret).mint(role: role, subject: subject, lifetime: lifetime, now: Clock.now())
    }
}
