<?php
// An app in PHP that writes down what it is asked, one line of JSON each. What
// PHP makes of the names is in $_SERVER, where "-" and "_" are the same.
$fields = [];
foreach (getallheaders() as $name => $value) $fields[] = [(string)$name, $value];
foreach ($_SERVER as $name => $value) if (str_starts_with($name, 'HTTP_')) $fields[] = [$name, $value];
file_put_contents(getenv('ATTACK_LOG'), json_encode([
	'method' => $_SERVER['REQUEST_METHOD'], 'target' => $_SERVER['REQUEST_URI'], 'fields' => $fields, 'trailers' => [],
	'body' => bin2hex(file_get_contents('php://input')),
], JSON_INVALID_UTF8_SUBSTITUTE) . "\n", FILE_APPEND);
header('Content-Type: text/plain');
echo 'seen ' . $_SERVER['REQUEST_URI'] . "\n";
