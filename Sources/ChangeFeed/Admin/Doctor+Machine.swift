import CLinux

/// What can be told without a database.
extension Doctor {
    /// Whether this machine's clock is kept by anything; nil where that cannot be told.
    package static func machineClock() -> Finding? {
        switch roost_clock_is_kept() {
        case 1: Finding(.good, "clock", "This machine's clock is kept.")
        case 0:
            Finding(
                .warning, "clock",
                "Nothing keeps this machine's clock, by which tokens expire and Apple judges pushes; run "
                    + "systemd-timesyncd or chrony.")
        default: nil
        }
    }
}
