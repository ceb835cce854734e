package evaluate_test

import "testing"

// TestAnchorSmall compresses the first two layers of a trained model, its head and its
// embedding, on as few tokens as are allowed, and checks the order of what that costs: the
// body alone, everything, everything rounded without GPTQ. A rotation undone wrongly, other
// inputs or a stage left out break it. TestIntegrationAnchor holds the whole model to
// published figures.
func TestAnchorSmall(t *testing.T) {
	c := newChain(t, 2)
	c.rounds = true
	c.compress(0, 12)
	s := c.scores("wiki.test.head.txt", 256, c.body, c.stages()[2], c.rtn)
	body, all, rtn := s[0].KL, s[1].KL, s[2].KL
	t.Logf("KL: body %.4f, all %.4f, all rounded %.4f", body, all, rtn)
	if !(0 < body && body < all && all < rtn) {
		t.Errorf("KL of body %.4f, all %.4f, all rounded %.4f do not ascend", body, all, rtn)
	}
}
