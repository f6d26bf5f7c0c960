import Identity
import Signatures
import Testing
import Wire

/// Keys and tokens that another implementation made (BoringSSL, by swift-crypto 4.5), and those of the RFCs.
@Suite struct FixedTokenTests {
    @Test("what another implementation signed is verified", arguments: SignatureAlgorithm.allCases)
    func others(_ algorithm: SignatureAlgorithm) throws {
        let (jwk, token) = try #require(Self.tokens[algorithm])
        let verifier = try verifier(keySet(jwk))
        #expect(verifier.refusal(token) == nil)
        // The last character of a part may hold bits that mean nothing; the fifth from the end never does.
        var forged = Array(token.utf8)
        forged[forged.count - 5] = forged[forged.count - 5] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        #expect(verifier.refusal(String(decoding: forged, as: UTF8.self)) == .signatureInvalid)
    }

    @Test("HS256 of RFC 7515, appendix A.1")
    func hmac() {
        let secret = bytes("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
        let signed = Array("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(Self.payload)".utf8)
        let code = bytes("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        let key = MessageAuthenticationKey(secret, .sha256)
        #expect(key.code(for: signed) == code)
        #expect(key.isCode(code, for: signed))
        #expect(!key.isCode(code, for: signed + [0]))
        #expect(!key.isCode(Array(code.dropLast()), for: signed))
    }

    @Test("RS256 of RFC 7515, appendix A.2")
    func rsa() throws {
        let modulus = bytes(
            "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SF"
                + "d2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-"
                + "UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2"
                + "ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ")
        let signature = bytes(
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdb"
                + "F9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN93"
                + "83LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIh"
                + "WkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw")
        let key = try #require(PublicKey(modulus: modulus, exponent: [1, 0, 1]))
        check(key, signature, Array("eyJhbGciOiJSUzI1NiJ9.\(Self.payload)".utf8), .rsa(.sha256))
        #expect(PublicKey(modulus: modulus, exponent: [1]) == nil)
        #expect(PublicKey(modulus: modulus, exponent: [2]) == nil)
        #expect(PublicKey(modulus: modulus, exponent: [3, 0, 0, 0, 1]) == nil, "34 bits")
        #expect(PublicKey(modulus: modulus, exponent: []) == nil)
        #expect(
            PublicKey(modulus: [UInt8](repeating: 0xFF, count: 1025), exponent: [1, 0, 1]) == nil, "over 8,192 bits")
    }

    @Test("ES256 of RFC 7515, appendix A.3")
    func ecdsa() throws {
        let (x, y) = (
            bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"), bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
        )
        let signature = bytes("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
        let key = try #require(PublicKey(.p256, x: x, y: y))
        check(key, signature, Array("eyJhbGciOiJFUzI1NiJ9.\(Self.payload)".utf8), .ecdsa(.sha256))
        #expect(PublicKey(.p256, x: y, y: x) == nil, "it is not on the curve")
        #expect(PublicKey(.p384, x: x, y: y) == nil)
        #expect(PublicKey(.p256, x: [0] + x, y: y) == nil)
        #expect(PublicKey(.p256, x: [UInt8](repeating: 0, count: 32), y: [UInt8](repeating: 0, count: 32)) == nil)
    }

    @Test("Ed25519 of RFC 8037, appendix A.4")
    func ed25519() throws {
        let key = try #require(PublicKey(ed25519: bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")))
        let signature = bytes("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
        check(key, signature, Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8), .ed25519)
        #expect(PublicKey(ed25519: [UInt8](repeating: 1, count: 31)) == nil)
    }

    private static let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    private func bytes(_ text: String) -> [UInt8] { Base64URL.decode(Array(text.utf8)) ?? [] }

    /// The key takes this signature of these bytes by this scheme, and nothing beside it.
    private func check(_ key: PublicKey, _ signature: [UInt8], _ signed: [UInt8], _ scheme: SignatureScheme) {
        #expect(key.verifies(signature, of: signed, scheme))
        for place in [0, signature.count / 2, signature.count - 1] {
            var forged = signature
            forged[place] ^= 1
            #expect(!key.verifies(forged, of: signed, scheme))
        }
        #expect(!key.verifies(signature, of: signed + [0], scheme))
        for wrong in [[], Array(signature.dropLast()), signature + [0], [UInt8](repeating: 0, count: signature.count)] {
            #expect(!key.verifies(wrong, of: signed, scheme))
        }
        let others: [SignatureScheme] = [
            .rsa(.sha256), .rsa(.sha384), .rsaPSS(.sha256), .ecdsa(.sha256), .ecdsa(.sha512), .ed25519,
        ]
        for other in others where "\(other)" != "\(scheme)" { #expect(!key.verifies(signature, of: signed, other)) }
    }

    private static let tokens: [SignatureAlgorithm: (jwk: String, token: String)] = [
        .hs256: (
            #"{"kty":"oct","k":"SD-HicGwx5Q-9MSRB1_-0dhfle3XqIhXaGdDLQUHaSGyBGZ1z7DTT8eGJ7oh3v3hkGa0gwo0ZcIf4jH2ZOGGQg","kid":"HS256","alg":"HS256"}"#,
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IkhTMjU2In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.kV0NgrT5pfZGJmxNX7JB-Yj0lVXDiKG5ptSt2LCtmQc"
        ),
        .hs384: (
            #"{"kty":"oct","k":"YSJannJXnk8qwHTtCID-FNA0G96bUn3S7ZMkfLRiohpY3FUNSrLyoEsVASxWgb60Ro87Ul-OIlfNX5iVBxj8lQ","kid":"HS384","alg":"HS384"}"#,
            "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCIsImtpZCI6IkhTMzg0In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.nL2XO4mDVYat3UW-i7ehxsVg7NECPAs9XJTzQFwWI5iq0XFmvx5oIw9sUa28Yjph"
        ),
        .hs512: (
            #"{"kty":"oct","k":"Lb2PSVyTU_XQcUcoiLoh8Q4dE7rcvJMxGJ7yvm1eDnEcmLkJ_0XPXLYlX51S20t-Q6UfP8mT5ohDjkbxtCJ8-A","kid":"HS512","alg":"HS512"}"#,
            "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCIsImtpZCI6IkhTNTEyIn0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.wEQRfggvQxwcVyZKcbOfxuXlIwLIsmJGCvheSryCLb_Y3acZztFSvmYlQswUFO9dwq1Kr82CDFFCuOVTc2abpQ"
        ),
        .rs256: (
            #"{"kty":"RSA","n":"vtKnp0J2kM3-mkTO7QtIiNq-kCF5fOdp_ucdoAic71GMI6zt5JSGq7ofqJgIAEpYoMtwqRMXzJ-gdokfiTCRM-_lfUFSjMETNDkqEnhExV1hQcDhE5yKPS7ZJJ8iwukhntBK5u6Rm3rrXhAaHX4i75CnvvOFl3OmbE3kOfWKObIxeXYpK9R-a1HG-p0LjGuFnuo4RjGC327XQ0VrXrsot1eA3uYqf5W2sV9-bdptRBUN7yTxu1suppr8_V_dQ9bpCPyRWkRG-H-zupLWO-ef21RZqie8o9MB25qYu6estFoLdofQoygpYpuwRC0axJTgRhhURlOqDcypkmXjDYaCHw","e":"AQAB","kid":"RS256","alg":"RS256"}"#,
            "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IlJTMjU2In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.CuQLOZRrqlsW4yZWyaaEwlrnLKYcApTNBFpZdl6iWE8bFumXKqQJ5MWDW5JM9Zbbsop3fEiW5foZAZ5KyyotNiAaNfFTGmJvh1iSvxyBc8I0ytDAWwu4eq6RIXML2BtyQZHdsXs1fldH9_uQsxR2t4WPgtnMXW89QSpim1F2ZRs6vr7bTaIsWUGW_w7jBhVHIuMTYi3m1cmX_IUfFKvrufi140AF332rBoHqM7ZIBmKmBGmi2hlx-hmguccu_6lW-EwlVVNfBBhWZb-BPextNJ7d2_5KHmAM3nCqVWVeSt8UrAYlc8Voq4q4T3eBgf_GQxSBDSMijr2B-7W8UBRG-Q"
        ),
        .rs384: (
            #"{"kty":"RSA","n":"vtKnp0J2kM3-mkTO7QtIiNq-kCF5fOdp_ucdoAic71GMI6zt5JSGq7ofqJgIAEpYoMtwqRMXzJ-gdokfiTCRM-_lfUFSjMETNDkqEnhExV1hQcDhE5yKPS7ZJJ8iwukhntBK5u6Rm3rrXhAaHX4i75CnvvOFl3OmbE3kOfWKObIxeXYpK9R-a1HG-p0LjGuFnuo4RjGC327XQ0VrXrsot1eA3uYqf5W2sV9-bdptRBUN7yTxu1suppr8_V_dQ9bpCPyRWkRG-H-zupLWO-ef21RZqie8o9MB25qYu6estFoLdofQoygpYpuwRC0axJTgRhhURlOqDcypkmXjDYaCHw","e":"AQAB","kid":"RS384","alg":"RS384"}"#,
            "eyJhbGciOiJSUzM4NCIsInR5cCI6IkpXVCIsImtpZCI6IlJTMzg0In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.F-t5S2BvskmlF4n9zifyfbIMRhp8m8kVVuRu8IcFmDLWEmiNaLchEZIlXDauZzrS1vtL8g1zCbS_zmlQUAN6GPOWJIQNlMdbU59gwY2GjmiaVM2tT7XLXpdCraaEY5fbsjLVTOVieQPolr-iZPAHXSEh7p-gIvxfWCeev0CyNFG7mPKigW1sl8Q9PIsNgOnGvJcYqVU8ONV_reWvMAr31zIVJun014jKlM0xqTejvKADijjPJTxpHpd7BQ828-MqVi-hSRz0X7wzzk2_iBPthdiGmkADUJnKyKMmw7xmGODsvRgMrpg-4_cFmNeZK1T7KGoX2sIiKsXaUOqurQkALw"
        ),
        .rs512: (
            #"{"kty":"RSA","n":"vtKnp0J2kM3-mkTO7QtIiNq-kCF5fOdp_ucdoAic71GMI6zt5JSGq7ofqJgIAEpYoMtwqRMXzJ-gdokfiTCRM-_lfUFSjMETNDkqEnhExV1hQcDhE5yKPS7ZJJ8iwukhntBK5u6Rm3rrXhAaHX4i75CnvvOFl3OmbE3kOfWKObIxeXYpK9R-a1HG-p0LjGuFnuo4RjGC327XQ0VrXrsot1eA3uYqf5W2sV9-bdptRBUN7yTxu1suppr8_V_dQ9bpCPyRWkRG-H-zupLWO-ef21RZqie8o9MB25qYu6estFoLdofQoygpYpuwRC0axJTgRhhURlOqDcypkmXjDYaCHw","e":"AQAB","kid":"RS512","alg":"RS512"}"#,
            "eyJhbGciOiJSUzUxMiIsInR5cCI6IkpXVCIsImtpZCI6IlJTNTEyIn0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.BOikMDXVcXv70_jGbaNmADLjZ1boQDzHcFU0It9HEhnnA0ySvZDL0CieszUChj_uXdJG0qyRqrwOYl8G0kYAv4v465NHNQVA2mwOdyH61rUcgCNXbabVcNCGLG5OJPoYIPQb8-OWTDp6YPGDafWyAh8bOWT2S4n8Pfx24-mXWXqknjMJ8J0NebuPKeXtrGfR8ehrlzy_THcsR7eUJjw6hV1Fi07G1MR7VF_0X3TThSH4clTbi8So-38o9MnVXw3JLcbYJJmC2gRu2c9ehhjaGA7JweFwklpOkqw-N5JSEWygvuvr9xzmhtbxGWwtuWsHANiCuQGVPfWCEGoCC8UdVw"
        ),
        .ps256: (
            #"{"kty":"RSA","n":"vtKnp0J2kM3-mkTO7QtIiNq-kCF5fOdp_ucdoAic71GMI6zt5JSGq7ofqJgIAEpYoMtwqRMXzJ-gdokfiTCRM-_lfUFSjMETNDkqEnhExV1hQcDhE5yKPS7ZJJ8iwukhntBK5u6Rm3rrXhAaHX4i75CnvvOFl3OmbE3kOfWKObIxeXYpK9R-a1HG-p0LjGuFnuo4RjGC327XQ0VrXrsot1eA3uYqf5W2sV9-bdptRBUN7yTxu1suppr8_V_dQ9bpCPyRWkRG-H-zupLWO-ef21RZqie8o9MB25qYu6estFoLdofQoygpYpuwRC0axJTgRhhURlOqDcypkmXjDYaCHw","e":"AQAB","kid":"PS256","alg":"PS256"}"#,
            "eyJhbGciOiJQUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IlBTMjU2In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.gwVNY-Lv_bt6G6PeOeMOb2W_X18QzY6VosxcJ-16MfzDLKlm4iHDbJZzVjYYpRau8UqKn-U02wxVwBcv9ZGCGTPbtJYQj08Y9nJEiQeNImycMaWpeiA8WTpCg2wyefyyjncBPZLRzJdzwR3EtktSexM2BoSG9PEBb-LSXM5RmfTA7YeC1E--Fv_LS8eZq-MemDv5-Yv40aJzHopZl_2ytqbuYzBCdQxjn6KtRCWC8awE8llTmAqiITX2RreMMExGJhX3wdy07xUCtxRMt_eAJqlK3pF_3w6oLE4XZchukuVhrEMCFQxH-tuiXG16acgNpNqLgLWl6cRJKU23YVrbnQ"
        ),
        .ps384: (
            #"{"kty":"RSA","n":"vtKnp0J2kM3-mkTO7QtIiNq-kCF5fOdp_ucdoAic71GMI6zt5JSGq7ofqJgIAEpYoMtwqRMXzJ-gdokfiTCRM-_lfUFSjMETNDkqEnhExV1hQcDhE5yKPS7ZJJ8iwukhntBK5u6Rm3rrXhAaHX4i75CnvvOFl3OmbE3kOfWKObIxeXYpK9R-a1HG-p0LjGuFnuo4RjGC327XQ0VrXrsot1eA3uYqf5W2sV9-bdptRBUN7yTxu1suppr8_V_dQ9bpCPyRWkRG-H-zupLWO-ef21RZqie8o9MB25qYu6estFoLdofQoygpYpuwRC0axJTgRhhURlOqDcypkmXjDYaCHw","e":"AQAB","kid":"PS384","alg":"PS384"}"#,
            "eyJhbGciOiJQUzM4NCIsInR5cCI6IkpXVCIsImtpZCI6IlBTMzg0In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.sEGUS5AU1UqPRmjdzm6-zHRoHcYXOc21G35HVy5iHAfOry0adQt4x_jVkVfmmpzYp0s8gPv55wxrgK6KX2A3ADVBeGZKnOZPx_NRpZK8MTe1vfuZiwURzYWlZiCS66ro46-zrpkXWIg9qXj1Aea9LahSePHjPxZPf8JqP0lR7EEm332yqhsuWSl1r6a9r9pOGCy9ZuD-ovA-vzl4n6WBjkS0TFALQwNN6hJ6jVWODCirF-iP0U58tcyOn22uwRCTuO5cNIKYhTG94VxhreJvXUXINDzej2QzUOmOCdcZDPmKX60emo1k-Y2plKdnBu-Xv_txD8OFLXYYD2tNqdcI7Q"
        ),
        .ps512: (
            #"{"kty":"RSA","n":"vtKnp0J2kM3-mkTO7QtIiNq-kCF5fOdp_ucdoAic71GMI6zt5JSGq7ofqJgIAEpYoMtwqRMXzJ-gdokfiTCRM-_lfUFSjMETNDkqEnhExV1hQcDhE5yKPS7ZJJ8iwukhntBK5u6Rm3rrXhAaHX4i75CnvvOFl3OmbE3kOfWKObIxeXYpK9R-a1HG-p0LjGuFnuo4RjGC327XQ0VrXrsot1eA3uYqf5W2sV9-bdptRBUN7yTxu1suppr8_V_dQ9bpCPyRWkRG-H-zupLWO-ef21RZqie8o9MB25qYu6estFoLdofQoygpYpuwRC0axJTgRhhURlOqDcypkmXjDYaCHw","e":"AQAB","kid":"PS512","alg":"PS512"}"#,
            "eyJhbGciOiJQUzUxMiIsInR5cCI6IkpXVCIsImtpZCI6IlBTNTEyIn0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.OMEKDHIFguFd1pbyo3YA5emEvMb4NnqPR1Det0Lo_Njh-wtU5atsRIVvI_fyE04FdPw3-J4hJXnLEa9hjSnAvlz5cKBMr7LWdEyaE47T6GgWKGmweHCSZiVW1tzdu3FsnlXhnOFWm9d40ROcEjczyLMZsMumszYfh0gw6K6E6cVwsFjPuyN_2Jrp93JTepLuAF6r2uZmgDk7iC7XS2UgWzgaBFiJGM66XUgSfdyIkQjfUi3AxgkGOcS6lFYyNX3X3swdCrIzTiIh-Q6zbvU0doDbP-1dbguOkx4mXlr116L6WzoVsrDEx0eMjOqotYIMsLBaOZ2B8Fn-ak-79h5ufg"
        ),
        .es256: (
            #"{"kty":"EC","crv":"P-256","x":"B2Ktdy0gHs4MKXNniyznCsZAZ_65OpA5YiLUVovshG4","y":"VLJtd6pXWsVF7Fy-p585WfmTm68tP6sDMxS4tzAfLVs","kid":"ES256","alg":"ES256"}"#,
            "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IkVTMjU2In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.W3Gxnl0VxWbHEnBrkBmhOwBGmGXSydXmVG9kAbFYOxdN3QuTIMGzt5L8j4J9W4qFVYu-2-BuHpZKW_tAMOZ5jg"
        ),
        .es384: (
            #"{"kty":"EC","crv":"P-384","x":"qNUnW4rTwLB8j54ctL3mWwwwvwnQw0PwmmX1nkV0ZlxXPdJaN2uvGErc5i2NvDte","y":"NqlS61H2mISg-BnzntGMBQBD2DHXpnojl2qcDNszQsJd77hL05bJzV8Wd-AChW2w","kid":"ES384","alg":"ES384"}"#,
            "eyJhbGciOiJFUzM4NCIsInR5cCI6IkpXVCIsImtpZCI6IkVTMzg0In0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.G-KCFhOsmTHNU7Qj9mVkvdUM2s2A7yWaSmZZ2OqUXy6WhjjCC4jF6YsNSc-BzaX4YfT0f8Jb25bR8i8P_mQOmsnyu5dxKiYAoRVQPOJ0P17FyZ637CJA7gY3NYBl0spr"
        ),
        .es512: (
            #"{"kty":"EC","crv":"P-521","x":"AV-oy2EwzZWi4M3aPmXhxkyN8BwtoTonnQsbByJ3As33nL6oRs3cEz4I9NxTAaU_ifExNzv0mj60LnU8nByeAPk5","y":"ANGJhgl5gg80uFNSGcolB4XEZxi6ORL0gxPqayr4fPHLraDeZ5Hz1KO8jv8vGVoDN47bjHV3sDMSPU8jouZKOZS7","kid":"ES512","alg":"ES512"}"#,
            "eyJhbGciOiJFUzUxMiIsInR5cCI6IkpXVCIsImtpZCI6IkVTNTEyIn0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.AExNCMKBu6ztx2wmrtVlkZjW3x00aldWTlPlXSCj8sEa_HyG3ZoF1uncnaWvQnEz5bURo7EKitU8GxLU7Cfb199sAeYnvtmxwQhpdhd3ENLjXhi0ILCLOWN1whJ3bHv0ZyUu1VgTyiuQhQ_RqAijo0bRDjl60y0MOX14w-Jfs1ms_nsA"
        ),
        .edDSA: (
            #"{"kty":"OKP","crv":"Ed25519","x":"B-5MwtQUGRMYqFcfPmkjDxjOHArU5ORh6hw7GGk_6B4","kid":"EdDSA","alg":"EdDSA"}"#,
            "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6IkVkRFNBIn0.eyJyb2xlIjoiYW5vbiIsInN1YiI6InUxIiwiaWF0IjoxMDAwLCJleHAiOjQwMDAwMDAwMDB9.bQ5lUXwJ1wv0PRzCQEAD21a5ULjNxlZ6Fwhb9qe80GrvHcOUP0rHZKiHX3iETjYsbdEIwxfOXcV3LOCCWzDfCQ"
        ),
    ]
}
