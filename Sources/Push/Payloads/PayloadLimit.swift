/// How large a payload may be, in bytes of the final JSON (Apple: "Generating a remote notification"; "Sending
/// broadcast push notification requests to APNs").
package enum PayloadLimit {
    /// To one device or one activity.
    package static let device = 4096
    package static let channel = 5120
}
