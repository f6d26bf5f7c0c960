// Imported by the legacy suite, whose only use of it is commented out.
export type JWTPayload = Record<string, unknown>;
export class SignJWT {}
