// swift-tools-version: 6.2
import PackageDescription

// A package of its own, as an app's is: the hub's tests are built without GRDB. `make test-grdb` runs it.
let package = Package(
    name: "grdb-tests",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "roost", path: "../..", traits: ["GRDB"]),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .testTarget(
            name: "GRDBTests",
            dependencies: [
                .product(name: "RoostClient", package: "roost"), .product(name: "RoostClientGRDB", package: "roost"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: "Tests")
    ])
