/// How the process ends, as sysexits.h numbers it, so that scripts and service managers can tell what is wrong.
enum ExitStatus: Int32 {
    /// The command line is wrong (`EX_USAGE`); ArgumentParser ends with it too.
    case usage = 64
    /// Something we need is not there: the database, a port (`EX_UNAVAILABLE`).
    case unavailable = 69
    /// A mistake of ours (`EX_SOFTWARE`).
    case software = 70
    /// The configuration is wrong (`EX_CONFIG`).
    case configuration = 78
}
