"""What a node queues: broadcasts, frames to send, deliveries to read."""
