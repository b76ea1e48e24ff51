"""How the answers to commands look: lines made from their facts, for screens and, as text, for lines of output."""
