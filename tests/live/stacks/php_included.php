<?php
// Is included by php_calls.php.
spin($seconds);
