<?php
// Spends known shares of the time in named functions, which native code calls and which call native code.
//
// Usage: php_calls.php SECONDS [FILE].  SECONDS of CPU time for the shares, and a tenth for each other part.
// With FILE the runtime notes who calls whom, as CALLER;CALLEE.
declare(ticks=1);

function now(): float
{
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'] + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e6;
}

function spin(float $seconds): int
{
    $sum = 0;
    for ($end = now() + $seconds; now() < $end;) {
        for ($i = mt_rand(50, 300); $i > 0; --$i) {
            $sum += $i * $i % 7;
        }
    }
    return $sum;
}

class Shares
{
    public function fifty(float $seconds): void
    {
        for ($end = now() + $seconds; now() < $end;) {
            gzcompress(str_repeat('a long text', mt_rand(500, 2000)), 9);
        }
    }

    public function thirty(float $seconds): void
    {
        for ($end = now() + $seconds; now() < $end;) {
            for ($i = 0; $i < 50; ++$i) {  // now() is a system call, at which ptrace stops threads more often
                preg_replace_callback('/a(b|c+)*d/', [$this, 'replaced'], str_repeat('abcccbcbccd', mt_rand(10, 40)));
            }
        }
    }

    public function replaced(array $match): string
    {
        $whole = $match[0];
        return substr($whole, 1);
    }

    public static function twenty(float $seconds): void
    {
        for ($end = now() + $seconds; now() < $end;) {
            $numbers = range(1, mt_rand(100, 300));
            usort($numbers, ['Shares', 'by_rest']);
        }
    }

    public static function by_rest(int $one, int $other): int
    {
        $rest = $one * 7919 % 200;
        return $rest <=> $other * 7919 % 200;
    }
}

function shares(float $seconds): void
{
    for ($i = 0; $i < 10; ++$i) {
        (new Shares())->fifty($seconds * 0.05);
        (new Shares())->thirty($seconds * 0.03);
        Shares::twenty($seconds * 0.02);
    }
}

function deep(int $more, float $seconds): int
{
    return $more ? deep($more - 1, $seconds) : spin($seconds);
}

function recursion(float $seconds): void
{
    deep(5000, $seconds);
}

function by_value(int $one, int $other): int
{
    spin(0.0005);
    return $one - $other;
}

function sorts(float $seconds): void
{
    for ($end = now() + $seconds; now() < $end;) {
        $numbers = range(1, 20);
        usort($numbers, 'by_value');
    }
}

function generate(float $seconds): Generator
{
    for ($end = now() + $seconds; now() < $end;) {
        yield spin(0.001);
    }
}

function generates(float $seconds): void
{
    foreach (generate($seconds) as $value) {
    }
}

function delegate(float $seconds): Generator
{
    yield from generate($seconds);
}

function delegates(float $seconds): void
{
    foreach (delegate($seconds) as $value) {
    }
}

function throws(float $seconds): void
{
    spin($seconds / 2);
    throw new RuntimeException();
}

function handles(float $seconds): void
{
    spin($seconds / 2);
}

function catches(float $seconds): void
{
    try {
        throws($seconds);
    } catch (RuntimeException $e) {
        handles($seconds);
    } finally {
        spin(0);
    }
}

function maps(float $seconds): void
{
    array_map(function ($part) use ($seconds) {
        return spin($seconds / 10);
    }, range(1, 10));
}

class Magic
{
    public function __construct(private float $seconds)
    {
    }

    public function __get(string $name): int
    {
        return spin($this->seconds / 3);
    }

    public function __call(string $name, array $arguments): int
    {
        return spin($this->seconds / 3);
    }

    public function __destruct()
    {
        spin($this->seconds / 3);
    }
}

function magic(float $seconds): void
{
    $object = new Magic($seconds);
    $object->property;
    $object->method();
    unset($object);
}

function includes(float $seconds): void
{
    include __DIR__ . '/php_included.php';
}

function fibers(float $seconds): void
{
    $fiber = new Fiber(function () use ($seconds) {
        spin($seconds / 2);
        Fiber::suspend();
        spin($seconds / 2);
    });
    $fiber->start();
    $fiber->resume();
}

function in_child(float $seconds): void
{
    spin($seconds);
}

function forks(float $seconds): void
{
    for ($i = 0; $i < 5; ++$i) {
        $child = pcntl_fork();
        if ($child === 0) {
            in_child($seconds / 5);
            exit(0);
        }
        pcntl_waitpid($child, $status);
    }
}

function whole(float $seconds): void
{
    shares($seconds);
    $parts = ['recursion', 'sorts', 'generates', 'delegates', 'catches', 'maps', 'magic', 'includes'];
    if (class_exists('Fiber')) {
        $parts[] = 'fibers';
    }
    if (function_exists('pcntl_fork')) {
        $parts[] = 'forks';
    }
    foreach ($parts as $part) {
        $part($seconds / 10);
    }
}

function name_of(array $frame): string
{
    if (in_array($frame['function'], ['include', 'require'])) {
        return basename($frame['args'][0]);
    }
    return ($frame['class'] ?? '') . (isset($frame['class']) ? '::' : '') . $frame['function'];
}

function note(): void
{
    $callee = '';
    foreach (array_slice(debug_backtrace(0), 1) as $frame) {
        $caller = name_of($frame);
        if ($callee !== '') {
            $GLOBALS['calls']["$caller;$callee"] = true;
        }
        $callee = $caller;
    }
    if ($callee !== '') {
        $GLOBALS['calls']["{main};$callee"] = true;
    }
}

if (isset($argv[2])) {
    $calls = ['forks;in_child' => true, 'in_child;spin' => true];
    register_tick_function('note');
    whole(0.1);
    unregister_tick_function('note');
    file_put_contents($argv[2], implode("\n", array_keys($calls)) . "\n");
} else {
    whole((float) $argv[1]);
}
