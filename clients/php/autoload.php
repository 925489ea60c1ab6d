<?php
// Finds the classes of the library (Debian's php-thrift) and the generated ones (--gen php:server).
spl_autoload_register(function (string $class): void {
    $generated = getenv('GENERATED') ?: __DIR__ . '/gen-php';
    $path = str_starts_with($class, 'Thrift\\') ? '/usr/lib/php/' . substr($class, 7) : "$generated/$class";
    $file = str_replace('\\', '/', $path) . '.php';
    if (is_file($file)) {
        require_once $file;
    }
});
