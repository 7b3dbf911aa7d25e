# Spends known shares of the time in named methods, which C functions call and which call C functions.
#
# Usage: ruby_calls.rb SECONDS [FILE].  SECONDS of CPU time for the shares, and a tenth for each other part.  With FILE
# the VM notes which method or block calls which, as CALLER;CALLEE.

def now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

$size = 1

# A number that varies, so that samples do not keep step with the work.
def vary(least)
  $size = ($size * 1_103_515_245 + 12_345) & 0x7fff_ffff
  least + ($size >> 8) % least
end

def spin(seconds)
  finish = now + seconds
  (1..vary(50)).inject { |sum, i| sum + i * i } while now < finish
end

class Shares
  def fifty(seconds)
    finish = now + seconds
    Array.new(vary(100)) { |i| i.to_s }.join.hash while now < finish
  end

  def thirty(seconds)
    finish = now + seconds
    ("abcccbcbccd" * vary(10)).gsub(/a(b|c+)*d/) { |found| replaced(found) } while now < finish
  end

  def replaced(found)
    found[1..].upcase
  end

  def twenty(seconds)
    finish = now + seconds
    (0..vary(100)).sort_by { |number| number * 7919 % 200 } while now < finish
  end
end

def shares(seconds)
  10.times do
    Shares.new.fifty(seconds * 0.05)
    Shares.new.thirty(seconds * 0.03)
    Shares.new.twenty(seconds * 0.02)
  end
end

def deep(more, seconds)
  more > 0 ? deep(more - 1, seconds) : spin(seconds)
end

def recursion(seconds)
  deep(3000, seconds)
end

def by_value(one, other)
  spin(0.0005)
  one <=> other
end

def sorts(seconds)
  finish = now + seconds
  (0..20).to_a.shuffle.sort { |one, other| by_value(one, other) } while now < finish
end

def generate(seconds)
  10.times { Fiber.yield spin(seconds / 10) }
end

def fibers(seconds)
  fiber = Fiber.new { generate(seconds) }
  fiber.resume while fiber.alive?
end

def throws(seconds)
  spin(seconds / 2)
  raise ArgumentError
end

def handles(seconds)
  spin(seconds / 2)
end

def catches(seconds)
  throws(seconds)
rescue ArgumentError
  handles(seconds)
end

def executes(seconds)
  eval("def made(seconds) = spin(seconds)\nmade(seconds)", binding, "made.rb", 1)
end

class Dynamic
  define_method(:defined) { |seconds| spin(seconds) }

  def method_missing(name, *arguments) = public_send(:defined, *arguments)

  def respond_to_missing?(*) = true
end

def dispatches(seconds)
  Dynamic.new.unknown(seconds)
end

def in_child(seconds)
  spin(seconds)
end

def forks(seconds)
  5.times { Process.wait(fork { in_child(seconds / 5); exit! }) }
end

def in_thread(seconds)
  -> { spin(seconds) }.call
end

# The VM reuses native threads.  All threads are kept, so that none gets the memory of one that has ended.
def threads(seconds)
  Array.new(10) { Array.new(2) { Thread.new { in_thread(seconds / 10) } }.each(&:join) }
end

def whole(seconds)
  shares(seconds)
  %i[recursion sorts fibers catches executes dispatches forks threads].each { |part| send(part, seconds / 10) }
end

def note_calls(path)
  # Those that happen where the VM is not asked.  Evaluated text has the name of the method that evaluates it.
  calls = [["<main>", "whole"], ["fibers", "block in fibers"], ["forks", "block in forks"], ["block in forks", "block (2 levels) in forks"], ["block (2 levels) in forks", "in_child"],
           %w[in_child spin], %w[executes executes]]
          .to_h { |call| [call, true] }
  trace = TracePoint.new(:call, :b_call, :return, :b_return) do |point|
    frames = Thread.current[:frames] ||= []  # each fiber has its own
    if %i[call b_call].include?(point.event)
      frames.push(caller_locations(1, 1).first.label.sub(/[\w:]+[#.]/, ""))  # since 3.4 it has the class
      calls[frames.last(2)] = true if frames.size > 1
    else
      frames.pop
    end
  end
  trace.enable
  whole(0.1)
  trace.disable
  File.write(path, calls.keys.map { |caller, callee| "#{caller};#{callee}\n" }.join)
end

ARGV[1] ? note_calls(ARGV[1]) : whole(ARGV[0].to_f)
