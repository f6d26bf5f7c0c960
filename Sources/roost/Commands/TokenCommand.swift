import ArgumentParser
import Identity
import Settings

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Mint a token for development and tests.",
        discussion: "Signs it with jwt.secret and prints it. In production your identity service mints tokens."
    )

    @Option(help: "The claim `role`: anon, authenticated, service_role or one of your own.")
    var role = "anon"

    @Option(help: ArgumentHelp("The claim `sub`, usually the user's id.", valueName: "subject"))
    var sub: String?

    @Option(help: ArgumentHelp("How long it is valid: 90s, 15m, 12h, 30d.", valueName: "duration"))
    var expiresIn = TokenLifetime(seconds: 3600)

    @Option(help: ArgumentHelp("More claims; they win over the other flags.", valueName: "json"))
    var claims: String?

    @Option(help: "HS256, HS384 or HS512.", transform: Self.algorithm)
    var algorithm = SignatureAlgorithm.hs256

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let secret = try await options.load().requireJWTSecret(for: "roost token")
        let token = DevelopmentToken(
            role: role, subject: sub, lifetime: expiresIn.seconds, claims: claims, algorithm: algorithm)
        print(try token.signed(with: secret))
    }

    @Sendable private static func algorithm(_ name: String) throws -> SignatureAlgorithm {
        guard let algorithm = SignatureAlgorithm(rawValue: name.uppercased()), algorithm.isSymmetric else {
            throw ValidationError("HS256, HS384 or HS512 is expected: a secret signs with no other.")
        }
        return algorithm
    }
}
