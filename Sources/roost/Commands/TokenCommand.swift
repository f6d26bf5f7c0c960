import ArgumentParser
import Settings

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Mint a token for development and tests.",
        discussion: "Signs it with jwt.secret (HS256) and prints it. In production your identity service mints tokens."
    )

    @Option(help: "The claim `role`: anon, authenticated, service_role or one of your own.")
    var role = "anon"

    @Option(help: ArgumentHelp("The claim `sub`, usually the user's id.", valueName: "subject"))
    var sub: String?

    @Option(help: ArgumentHelp("How long it is valid: 90s, 15m, 12h, 30d.", valueName: "duration"))
    var expiresIn = TokenLifetime(seconds: 3600)

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let secret = try await options.load().requireJWTSecret(for: "roost token")
        print(DevelopmentToken.mint(secret: secret, role: role, subject: sub, lifetime: expiresIn.seconds))
    }
}
