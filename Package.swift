// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]
/// A build for tests (`ROOST_BUILD=quick`, which CI sets) optimizes only the modules on a frame's way from socket to socket. What is
/// given away is built without it.
let isQuick = Context.environment["ROOST_BUILD"] == "quick"
/// Without a second run of the compiler over all of it for the module's interface, for which nobody waits.
let unoptimized: SwiftSetting = .unsafeFlags(
    ["-Onone", "-no-emit-module-separately-wmo"], .when(configuration: .release))
let withTesting: SwiftSetting = .unsafeFlags(["-enable-testing"], .when(configuration: .release))
/// For what no frame passes through, which is most of the code: optimizing takes six times as long as compiling.
let cold = isQuick ? strict + [unoptimized] : strict
/// Its state machines are tested behind its one door; elsewhere `package` access does.
let testable = cold + [withTesting]
/// The same for what has to be fast in tests too: simulations of clusters, and the load tester, which would measure itself.
let optimizedTestable = strict + [withTesting]
/// For tests: to optimize them takes longer than they gain by it. What they test is optimized.
let quick = strict + [unoptimized]
/// For what tests share and run.
let fixture = quick + [withTesting]
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

/// The commit of a build that is given away, as `ROOST_COMMIT=0123456789ab swift build`; empty in a build for development.
let commit = (Context.environment["ROOST_COMMIT"] ?? "").filter { $0.isHexDigit || "+changes".contains($0) }

let package = Package(
    name: "roost",
    // RoostClient's: the hub itself runs on Linux.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .executable(name: "roost", targets: ["roost"]),
        .library(name: "RoostClient", targets: ["RoostClient"]),
        .library(name: "RoostClientGRDB", targets: ["RoostClientGRDB"]),
    ],
    // Off unless an app asks for it, so that nobody else fetches or builds GRDB.
    traits: [.trait(name: "GRDB", description: "RoostClientGRDB keeps lists of rows in a database of GRDB's.")],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        // The load tester's alone.
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", exact: "0.2.0"),
    ],
    targets: [
        .target(name: "Wire", swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["Wire"], swiftSettings: strict),
        .target(name: "Streams", dependencies: ["Wire"], swiftSettings: strict),
        .target(
            name: "StreamFiles", dependencies: ["Redis", "Streams", "Wire", "Workers", logging], swiftSettings: cold),
        .target(name: "DurableStreams", dependencies: ["HTTP", "Streams", "Wire"], swiftSettings: cold),
        .target(name: "Matching", dependencies: ["Wire"], swiftSettings: strict),
        .target(
            name: "Cluster", dependencies: [.product(name: "DequeModule", package: "swift-collections")],
            swiftSettings: strict),
        .target(
            name: "Hub",
            dependencies: [
                "Matching", "Signatures", "Streams", "Wire",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Identity",
            dependencies: ["CCurl", "Documents", "Hub", "Signatures", "Wire", logging], swiftSettings: cold),
        .target(name: "Signatures", dependencies: ["CCrypto"], swiftSettings: strict),
        .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        .target(name: "Documents", dependencies: ["CJansson"], swiftSettings: cold),
        .target(name: "CCrypto", linkerSettings: [.linkedLibrary("crypto")]),
        .target(
            name: "CCurl",
            linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("nghttp2"), .linkedLibrary("ssl")]),
        .target(
            name: "CWebSockets", linkerSettings: [.linkedLibrary("websockets"), .linkedLibrary("uv")]),
        .target(name: "CSendRing", linkerSettings: [.linkedLibrary("uring")]),
        .target(name: "CBuild", cSettings: commit.isEmpty ? [] : [.define("ROOST_COMMIT", to: "\"\(commit)\"")]),
        .systemLibrary(name: "CMalloc"),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .target(
            name: "Gateway",
            dependencies: [
                "CSendRing", "CWebSockets", "DurableStreams", "HTTP", "Hub", "Streams", "Wire", "Workers", logging,
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: strict),
        .target(
            name: "ServerAPI", dependencies: ["Gateway", "HTTP", "Hub", "Wire", logging], swiftSettings: testable),
        .systemLibrary(name: "CLinux"),
        .target(name: "Workers", dependencies: ["CLinux", logging], swiftSettings: cold),
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .target(name: "CTLSClient", linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .target(name: "CLuaFiles"),
        .target(
            name: "Redis",
            dependencies: [
                "CHiredis", "CLuaFiles", "CTLSClient", "Workers",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            exclude: ["Lua"], swiftSettings: testable),
        .target(
            name: "Postgres", dependencies: ["CPostgres", "CSQLFiles", "Workers", logging], exclude: ["SQL"],
            swiftSettings: cold),
        .target(
            name: "Clustering",
            dependencies: [
                "Cluster", "Hub", "Redis", "Wire", "Workers", logging,
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: optimizedTestable),
        .target(name: "CSQLFiles"),
        .target(
            name: "Schema", dependencies: ["Postgres"], exclude: ["SQL"], swiftSettings: cold),
        .target(
            name: "ChangeFeed", dependencies: ["Hub", "Matching", "Postgres", "Schema", "Wire", "Workers", logging],
            exclude: ["SQL"], swiftSettings: cold),
        .target(
            name: "Stores",
            dependencies: [
                "ChangeFeed", "Hub", "Matching", "Postgres", "Schema", "Streams", "Wire", "Workers", logging,
            ],
            exclude: ["SQL"], swiftSettings: cold),
        .target(
            name: "Capture", dependencies: ["Matching", "Postgres", "Schema", "Wire", "Workers", logging],
            exclude: ["SQL"], swiftSettings: cold),
        .target(
            name: "Listening", dependencies: ["Hub", "Postgres", "Wire", "Workers", logging], swiftSettings: cold),
        .target(
            name: "Administration",
            dependencies: [
                "CLinux", "Capture", "ChangeFeed", "Postgres", "Redis", "Schema", "Stores", "Streams", "Wire",
                "Workers",
            ],
            exclude: ["SQL"], swiftSettings: cold),
        .target(
            name: "Push",
            dependencies: [
                "CCurl", "Documents", "Hub", "Signatures", "Wire", "Workers", logging,
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
            ],
            swiftSettings: testable),
        .target(
            name: "Notify",
            dependencies: [
                "ChangeFeed", "HTTP", "Hub", "Matching", "Postgres", "Push", "Stores", "Wire", "Workers", logging,
            ],
            swiftSettings: cold),
        .target(
            name: "Ops",
            dependencies: ["CMalloc", "COpsFiles", "Documents", "Gateway", "HTTP", "Hub", "Streams", "Wire", logging],
            exclude: ["Web"], swiftSettings: cold),
        .target(
            name: "Webhooks", dependencies: ["CCurl", "Hub", "Signatures", "Wire", "Workers", logging],
            swiftSettings: testable),
        .target(
            name: "Forwarding", dependencies: ["CCurl", "Streams", "Webhooks", "Wire", "Workers", logging],
            swiftSettings: testable),
        .target(name: "COpsFiles"),
        .target(
            name: "Demo",
            dependencies: [
                "Administration", "CDemoFiles", "HTTP", "Hub", "Identity", "Postgres", "Streams", "Wire", logging,
            ],
            exclude: ["API.md", "SQL", "Web"], swiftSettings: cold),
        .target(name: "CDemoFiles"),
        .target(
            name: "RoostClient",
            dependencies: [
                "Wire", .target(name: "CWebSockets", condition: .when(platforms: [.linux])),
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: cold),
        .target(
            name: "RoostClientGRDB",
            dependencies: [
                "RoostClient", .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
            ],
            swiftSettings: cold),
        .target(
            name: "Settings", dependencies: [.product(name: "Yams", package: "Yams")], swiftSettings: cold),
        .executableTarget(
            name: "roost",
            dependencies: [
                "Administration", "CBuild", "CCurl", "CLinux", "Capture", "ChangeFeed", "Cluster", "Clustering", "Demo",
                "Documents",
                "DurableStreams", "Forwarding", "Gateway", "HTTP", "Hub", "Identity", "Listening", "Notify", "Ops",
                "Postgres",
                "Push",
                "Redis", "RoostClient", "ServerAPI", "Settings", "Stores", "StreamFiles", "Streams", "Webhooks", "Wire",
                logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: testable
        ),
        .systemLibrary(name: "CLoad", path: "loadtest/CLoad"),
        .executableTarget(
            name: "roost-load",
            dependencies: [
                "CLoad", "CPostgres", "Wire", .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            path: "loadtest/roost-load", swiftSettings: optimizedTestable),
        // Counts what is allocated in the program that links it, which is why no other may.
        .target(name: "CAllocationCount", path: "loadtest/CAllocationCount"),
        .executableTarget(
            name: "roost-micro",
            dependencies: [
                "CAllocationCount", "HTTP", "Hub", "Matching", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "loadtest/micro", exclude: ["thresholds.txt"], swiftSettings: strict),
        // examples/swift-chat, which is a package of its own for whoever copies it.
        .executableTarget(
            name: "example-chat", dependencies: ["RoostClient"], path: "examples/swift-chat/Sources/chat",
            swiftSettings: cold),
        // What the end-to-end tests drive RoostClient with.
        .executableTarget(
            name: "client-probe", dependencies: ["RoostClient"], path: "Tests/ClientProbe", swiftSettings: quick),
        .testTarget(
            name: "RoostClientTests", dependencies: ["RoostClient", "Wire", "TestSupport"], swiftSettings: quick),
        .testTarget(name: "LoadTests", dependencies: ["roost-load", "Wire"], swiftSettings: quick),
        // Optimized: it tries millions of inputs.
        .testTarget(name: "WireTests", dependencies: ["Documents", "Wire", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "ClusteringTests", dependencies: ["Cluster", "Clustering", "Hub", "Wire", "TestSupport"],
            swiftSettings: quick),
        .testTarget(name: "DocumentsTests", dependencies: ["Documents"], swiftSettings: quick),
        .testTarget(name: "StreamsTests", dependencies: ["Streams", "TestSupport"], swiftSettings: quick),
        .testTarget(
            name: "ClusterTests",
            dependencies: ["Cluster", .product(name: "HeapModule", package: "swift-collections")], swiftSettings: quick),
        .testTarget(
            name: "StreamFilesTests",
            dependencies: ["Redis", "RedisFixtures", "StreamFiles", "Streams", "TestSupport", logging],
            swiftSettings: quick),
        .testTarget(
            name: "DurableStreamsTests", dependencies: ["DurableStreams", "HTTP", "Streams"], swiftSettings: quick),
        .testTarget(name: "HTTPTests", dependencies: ["HTTP", "TestSupport"], swiftSettings: quick),
        .testTarget(name: "MatchingTests", dependencies: ["Matching", "Wire", "TestSupport"], swiftSettings: quick),
        .testTarget(
            name: "HubTests", dependencies: ["Hub", "Matching", "Streams", "Wire", "TestSupport"], swiftSettings: quick),
        .testTarget(
            name: "GatewayTests", dependencies: ["Gateway", "HTTP", "Hub", "Wire", "TestSupport"], swiftSettings: quick),
        .testTarget(
            name: "ServerAPITests", dependencies: ["Gateway", "HTTP", "Hub", "ServerAPI", "Wire"], swiftSettings: quick),
        .testTarget(
            name: "IdentityTests",
            dependencies: ["CTestKeys", "Identity", "Hub", "Signatures", "Wire", logging, "TestSupport"],
            swiftSettings: quick),
        .target(name: "TestSupport", path: "Tests/Support", swiftSettings: strict),
        // Key pairs that tests sign with.
        .target(
            name: "CTestKeys", dependencies: ["CCrypto"], path: "Tests/CTestKeys",
            linkerSettings: [.linkedLibrary("crypto")]),
        .testTarget(name: "WebhooksTests", dependencies: ["Hub", "Webhooks"], swiftSettings: quick),
        .testTarget(name: "ForwardingTests", dependencies: ["Forwarding", "Streams"], swiftSettings: quick),
        .testTarget(name: "OpsTests", dependencies: ["Ops", "Gateway", "Hub"], swiftSettings: quick),
        .testTarget(name: "SettingsTests", dependencies: ["Settings"], swiftSettings: quick),
        .testTarget(
            name: "PushTests",
            dependencies: ["CTestKeys", "Push", "Hub", "Signatures", "Wire", logging, "TestSupport"],
            swiftSettings: quick),
        .testTarget(
            name: "NotifyTests", dependencies: ["Hub", "Matching", "Notify", "Push", "Stores", "Wire"],
            swiftSettings: quick),
        .testTarget(
            name: "RoostTests", dependencies: ["roost", "Demo", "Hub", "Push", "Settings", "Streams"],
            swiftSettings: quick),
        // A Redis server of the tests' own, and what may happen to its connections.
        .target(name: "RedisFixtures", dependencies: ["Redis"], path: "Tests/RedisFixtures", swiftSettings: quick),
        .testTarget(
            name: "RedisTests", dependencies: ["Redis", "RedisFixtures", "TestSupport", "Workers"], swiftSettings: quick
        ),
        .testTarget(name: "WorkersTests", dependencies: ["Workers"], swiftSettings: quick),
        .testTarget(
            name: "ListeningTests",
            dependencies: ["Hub", "Listening", "Postgres", "PostgresFixtures", "Wire", "Workers", logging],
            swiftSettings: quick),
        .testTarget(
            name: "CaptureTests",
            dependencies: [
                "Administration", "Capture", "ChangeFeed", "Postgres", "PostgresFixtures", "Workers", logging,
            ],
            swiftSettings: quick),
        .testTarget(
            name: "PostgresTests", dependencies: ["Administration", "Capture", "Postgres", "Schema", "Stores"],
            swiftSettings: quick),
        // What tests on a Postgres of their own share.
        .target(
            name: "PostgresFixtures",
            dependencies: ["Administration", "ChangeFeed", "Hub", "Matching", "Postgres", logging],
            path: "Tests/PostgresFixtures", swiftSettings: fixture),
        .testTarget(
            name: "ChangeFeedTests",
            dependencies: [
                "Administration", "ChangeFeed", "Hub", "Matching", "Postgres", "PostgresFixtures", "Schema",
                "TestSupport",
            ],
            swiftSettings: quick),
        .testTarget(
            name: "StoresTests",
            dependencies: [
                "Administration", "ChangeFeed", "Hub", "Matching", "Postgres", "PostgresFixtures", "Stores",
                "Streams", "TestSupport",
            ],
            swiftSettings: quick),
        .testTarget(
            name: "AdministrationTests",
            dependencies: [
                "Administration", "Capture", "ChangeFeed", "Postgres", "PostgresFixtures", "Redis", "RedisFixtures",
                "Schema",
                "Stores", "Streams", "TestSupport",
            ],
            swiftSettings: quick),
    ]
)

/// `make fuzz` sets it to libFuzzer's library, and builds nothing but the fuzzer and the readers that it is for.
if let library = Context.environment["ROOST_FUZZ"] {
    let fuzzed: [Target.Dependency] = [
        "CPostgres", "Capture", "ChangeFeed", "Cluster", "Clustering", "DurableStreams", "Gateway", "HTTP", "Hub",
        "Identity", "Matching", "Notify", "Postgres", "Push", "Redis", "ServerAPI", "Stores", "StreamFiles", "Streams",
        "Wire",
    ]
    package.targets.removeAll { $0.type == .test || $0.type == .executable }
    package.products = [.executable(name: "roost-fuzz", targets: ["roost-fuzz"])]
    // Every branch that is taken is told to libFuzzer. Both are named, as the compiler takes the last list alone, and `--sanitize` comes
    // before it.
    for target in package.targets where target.type == .regular {
        target.swiftSettings?.append(.unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing"]))
    }
    package.targets += [
        .systemLibrary(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        .executableTarget(
            name: "roost-fuzz", dependencies: fuzzed + ["CFuzzer"], path: "Tests/Fuzz/roost-fuzz",
            swiftSettings: strict + [.unsafeFlags(["-enable-testing"])],
            linkerSettings: [.unsafeFlags([library]), .linkedLibrary("stdc++"), .linkedLibrary("m")]),
    ]
}

/// For whoever works on one room: `ROOST_TESTS=HubTests,WireTests` leaves the other test targets out of the build.
if let wanted = Context.environment["ROOST_TESTS"]?.split(separator: ",") {
    package.targets.removeAll { $0.type == .test && !wanted.contains(Substring($0.name)) }
}
