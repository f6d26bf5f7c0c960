// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "swift-chat",
    platforms: [.macOS(.v15)],
    // A package of your own names the repository: .package(url: "https://git.example.com/you/roost", branch: "main")
    dependencies: [.package(name: "roost", path: "../..")],
    targets: [
        .executableTarget(name: "chat", dependencies: [.product(name: "RoostClient", package: "roost")])
    ]
)
