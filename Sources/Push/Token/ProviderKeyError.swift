/// Why a provider key cannot be used.
package enum ProviderKeyError: Error, Equatable {
    case team, keyID, empty, notPEM, unusable
}

extension ProviderKeyError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .team:
            "The APNs team id is not ten letters and digits: copy it from the membership page of developer.apple.com."
        case .keyID:
            "The APNs key id is not ten letters and digits: it is in the name of the file, AuthKey_KEYID.p8."
        case .empty: "The APNs private key is empty: give the text of the .p8 file."
        case .notPEM:
            "The APNs private key does not begin with -----BEGIN PRIVATE KEY-----: give the whole text of the .p8 "
                + "file, with its first and last line (line breaks may be written as \\n)."
        case .unusable:
            "The APNs private key is no P-256 key in PKCS #8: give the .p8 file as Apple issued it, not a certificate "
                + "and not a key of another kind."
        }
    }
}
