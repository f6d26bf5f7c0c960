import Administration
import Foundation
import Gateway
import Glibc
import Ops
import Settings

/// Checks of `roost doctor` on the machine that it runs on, which should be the hub's.
struct MachineExamination {
    let configuration: RoostConfiguration

    func runChecks() -> [Finding] {
        [eventLibrary, openFiles, ioUring] + kernel + (Doctor.checkMachineClock().map { [$0] } ?? [])
    }

    private var eventLibrary: Finding {
        // A release's archive has it beside the program.
        let own = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path + "/../lib"
        let folders = [own, "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib"]
        let isThere = folders.contains {
            FileManager.default.fileExists(atPath: $0 + "/libwebsockets-evlib_uv.so")
        }
        return isThere
            ? Finding(.good, "event loop", "libwebsockets has its libuv plugin.")
            : Finding(
                .error, "event loop", "libwebsockets' libuv plugin is missing; install Debian's libwebsockets-evlib-uv."
            )
    }

    private var endsTLS: Bool { configuration.tlsCertificate != nil }
    private var filesOfSocket: String { endsTLS ? "three for each socket over TLS" : "one for each socket" }

    private var openFiles: Finding {
        let limit = OpenFiles.raiseLimit()
        let wanted = configuration.connections
        guard wanted <= OpenFiles.sockets(wanted: 0, overTLS: endsTLS) else {
            return Finding(
                .warning, "open files",
                "The hub may hold only \(limit) files, \(filesOfSocket), and limits.connections is \(wanted); "
                    + "raise the limit (LimitNOFILE= in systemd, ulimit -Hn).")
        }
        return limit >= 10_000
            ? Finding(.good, "open files", "The hub may hold \(limit) files, \(filesOfSocket).")
            : Finding(
                .warning, "open files",
                "The hub may hold only \(limit) files, \(filesOfSocket); raise the limit (LimitNOFILE= in systemd, "
                    + "ulimit -Hn)."
            )
    }

    private var ioUring: Finding {
        guard configuration.ioUring else {
            return Finding(.good, "io_uring", "io_uring is turned off: every socket takes a system call of its own.")
        }
        if SendRing() != nil { return Finding(.good, "io_uring", "Broadcasts go out in batches, by io_uring.") }
        let reason = String(cString: strerror(errno))
        return Finding(
            .warning, "io_uring",
            "There is no io_uring here (\(reason)), so a broadcast takes a system call for each socket; allow "
                + "io_uring_setup, _enter and _register (seccomp, kernel.io_uring_disabled), or set io_uring: false.")
    }

    private var kernel: [Finding] {
        let wanted = configuration.connections
        let sockets = wanted == 0 ? OpenFiles.sockets(wanted: 0, overTLS: endsTLS) : wanted
        let advice = KernelSettings().advice(sockets: sockets, isChosen: wanted != 0)
        guard !advice.isEmpty else { return [Finding(.good, "kernel", "The kernel has room for the hub's sockets.")] }
        return advice.map { Finding(.warning, "kernel", $0) }
    }
}

/// Checks of `roost doctor` on the hub's certificate.
struct CertificateExamination {
    let files: CertificateFiles?
    /// The time of the check, in seconds since 1970.
    let now: Int

    private static let subject = "certificate"
    private static let day = 86_400
    /// The days that a certificate should remain valid; the alert rules in config/prometheus warn at the same time.
    private static let ample = 14

    func checkFiles() -> Finding {
        guard let files else {
            return Finding(
                .good, Self.subject,
                "The hub does not speak TLS (tls.certificate is not set): put a proxy in front that does.")
        }
        do {
            return certificateFinding(of: try Certificate(files), in: files)
        } catch {
            return Finding(.error, Self.subject, "\(error)")
        }
    }

    private func certificateFinding(of certificate: Certificate, in files: CertificateFiles) -> Finding {
        let path = files.certificate
        if let reproach = certificate.reproach(at: now) {
            return Finding(.error, Self.subject, "Clients refuse the certificate \(path): \(reproach); renew it.")
        }
        let days = (certificate.ends - now) / Self.day
        guard days >= Self.ample else {
            return Finding(
                .warning, Self.subject,
                "The certificate \(path) expires at \(certificate.expiry); renew it, and the hub shows the new one within "
                    + "seconds.")
        }
        return Finding(.good, Self.subject, "The certificate \(path) is good for \(days) days, and its key fits.")
    }
}
