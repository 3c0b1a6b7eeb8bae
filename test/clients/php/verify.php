<?php
// An app that believes who is there by X-Service-Token alone, as docs/writing-an-app.md has
// it, with nothing but PHP's own sodium. ADDRESS is its own, https://NAME.HOST.
// Run it with: php -S 127.0.0.1:8000 verify.php

function part(string $text): string
{
    return sodium_base642bin($text, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING);
}

// keyOf finds the key of an id. For one that it does not know it looks again, at most once a minute.
function keyOf(string $address, string $id): string
{
    $file = __DIR__ . '/keys.json'; // where no other user may write
    $set = is_file($file) ? json_decode(file_get_contents($file), true) : null;
    $known = array_column($set['keys'] ?? [], 'x', 'kid');
    if (!isset($known[$id]) && (!is_file($file) || filemtime($file) < time() - 60)) {
        $text = file_get_contents($address . '/.porchlight/jwks.json');
        if ($text === false) {
            throw new Exception('the keys cannot be fetched');
        }
        file_put_contents($file, $text, LOCK_EX);
        $known = array_column(json_decode($text, true)['keys'], 'x', 'kid');
    }
    return part($known[$id] ?? throw new Exception('its key is not known'));
}

function who(string $token, string $address): array
{
    $parts = explode('.', $token);
    if (count($parts) !== 3) {
        throw new Exception('there is no token');
    }
    $header = json_decode(part($parts[0]), true);
    if (($header['alg'] ?? '') !== 'EdDSA' || ($header['typ'] ?? '') !== 'porchlight-id+jwt' || !is_string($header['kid'] ?? null)) {
        throw new Exception('it is a token for something else');
    }
    if (!sodium_crypto_sign_verify_detached(part($parts[2]), "$parts[0].$parts[1]", keyOf($address, $header['kid']))) {
        throw new Exception('it is signed by somebody else');
    }
    $claims = json_decode(part($parts[1]), true);
    if ($claims['iss'] !== 'https://' . explode('.', $address, 2)[1] || $claims['aud'] !== $address || $claims['exp'] <= time()) {
        throw new Exception('it is for another app, or over');
    }
    return $claims;
}

try {
    $claims = who($_SERVER['HTTP_X_SERVICE_TOKEN'] ?? '', getenv('ADDRESS'));
    echo "$claims[sub] $claims[email] $claims[role]";
} catch (Throwable $err) { // sodium's own too
    http_response_code(403);
    echo $err->getMessage();
}
