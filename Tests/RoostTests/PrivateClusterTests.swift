import Demo
import Foundation
import Testing

/// The demo's Postgres, with stand-ins for Postgres' programs.
@Suite struct PrivateClusterTests {
    @Test func dataOfAnotherMajorVersionIsNamed() throws {
        let files = FileManager.default
        let root = files.temporaryDirectory.appendingPathComponent("roost-demo-\(UUID().uuidString)")
        defer { try? files.removeItem(at: root) }
        let programs = root.appendingPathComponent("bin")
        let data = root.appendingPathComponent("demo/postgres")
        for folder in [programs, data] { try files.createDirectory(at: folder, withIntermediateDirectories: true) }
        for (name, script) in [
            ("initdb", "exit 1"), ("pg_controldata", "exit 0"), ("pg_ctl", "exit 3"),
            ("postgres", "echo 'postgres (PostgreSQL) 15.4 (Debian 15.4-1)'"),
        ] {
            let path = programs.appendingPathComponent(name).path
            let isMade = files.createFile(
                atPath: path, contents: Data("#!/bin/sh\n\(script)\n".utf8), attributes: [.posixPermissions: 0o755])
            #expect(isMade)
        }
        let cluster = try PrivateCluster(
            folder: root.appendingPathComponent("demo"), port: 1, programs: programs.path)

        try Data("14\n".utf8).write(to: data.appendingPathComponent("PG_VERSION"))
        let other = try #require(#expect(throws: PrivateCluster.Failure.self) { try cluster.start() })
        #expect(
            other.description
                == "The demo's data in \(data.path) was made by Postgres 14, but \(programs.path) is Postgres 15: name the programs "
                + "of Postgres 14 with ROOST_POSTGRES_BIN, choose another --folder, or throw the data away with --fresh."
        )

        try Data("15\n".utf8).write(to: data.appendingPathComponent("PG_VERSION"))
        let same = try #require(#expect(throws: PrivateCluster.Failure.self) { try cluster.start() })
        #expect(same.description.hasPrefix("The demo's Postgres does not start on port 1;"))
    }
}
